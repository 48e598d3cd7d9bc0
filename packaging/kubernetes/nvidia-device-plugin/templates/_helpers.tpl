{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{- define "graft.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "graft.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "graft.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "graft.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "graft.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{- define "graft.gfd.namespace" -}}
{{- default (include "graft.namespace" .) .Values.gfd.namespaceOverride }}
{{- end }}

{{- define "graft.gfd.fullname" -}}
{{- printf "%s-%s" (include "graft.fullname" .) .Values.gfd.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "graft.selector" -}}
{{- if .Values.selectorLabelsOverride }}
{{- toYaml .Values.selectorLabelsOverride }}
{{- else }}
app.kubernetes.io/name: {{ include "graft.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- end }}

{{- define "graft.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ include "graft.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "graft.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{- define "graft.hasConfig" -}}
{{- if or .Values.config.name .Values.config.map }}true{{ end }}
{{- end }}

{{/* Whether pods share GPUs by MPS, of which a config file says how: the daemons are ours unless a value says otherwise. */}}
{{- define "graft.mps.enabled" -}}
{{- if and .Values.mps.root (include "graft.hasConfig" .) (ne (toString .Values.mps.enabled) "false") }}true{{ end }}
{{- end }}

{{- define "graft.configMap" -}}
{{- if .Values.config.name }}{{ .Values.config.name }}{{ else }}{{ include "graft.fullname" . }}-configs{{ end }}
{{- end }}

{{/* Whether a list strategy, a word with commas or a list, has one of CDI's. */}}
{{- define "graft.listStrategy" -}}
{{- if kindIs "slice" .Values.deviceListStrategy }}{{ join "," .Values.deviceListStrategy }}{{ else }}{{ default "" .Values.deviceListStrategy }}{{ end }}
{{- end }}

{{/* Whether feature discovery talks to the API server, and needs an account that may. The device plugin does so only for its configuration. */}}
{{- define "graft.gfd.needsAccount" -}}
{{- if and .Values.gfd.enabled (or (include "graft.hasConfig" .) .Values.nfd.enableNodeFeatureApi) }}true{{ end }}
{{- end }}

{{/* Fields of a pod: dict "account" "needed". */}}
{{- define "graft.accountFields" -}}
{{- if .needed -}}
serviceAccountName: {{ .account }}
{{- else -}}
automountServiceAccountToken: false
{{- end }}
{{- end }}

{{/* Of the kernel log only a privileged container reads; MIG devices are found through device nodes, and so are those of the CPU manager. */}}
{{- define "graft.securityContext" -}}
{{- if .Values.securityContext }}
{{- toYaml .Values.securityContext }}
{{- else if or .Values.healthChecks .Values.compatWithCPUManager (and .Values.migStrategy (ne .Values.migStrategy "none")) (include "graft.hasConfig" .) }}
privileged: true
{{- else }}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
{{- end }}

{{/* env NAME VALUE: an environment variable, unless the value is null. */}}
{{- define "graft.env" -}}
{{- if not (kindIs "invalid" .value) }}
- name: {{ .name }}
  value: {{ if kindIs "slice" .value }}{{ join "," .value | quote }}{{ else }}{{ toString .value | quote }}{{ end }}
{{- end }}
{{- end }}

{{/* What the programs share: how the driver is found, and which configuration counts. */}}
{{- define "graft.sharedEnv" -}}
{{- include "graft.env" (dict "name" "MIG_STRATEGY" "value" .Values.migStrategy) }}
{{- include "graft.env" (dict "name" "FAIL_ON_INIT_ERROR" "value" .Values.failOnInitError) }}
{{- include "graft.env" (dict "name" "DEVICE_DISCOVERY_STRATEGY" "value" .Values.deviceDiscoveryStrategy) }}
- name: CONTAINER_DRIVER_ROOT
  value: /driver-root
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- end }}

{{- define "graft.configEnv" -}}
{{- if include "graft.hasConfig" . }}
{{- if eq .Values.configSelection "sidecar" }}
- name: CONFIG_FILE
  value: /config/config.yaml
{{- else }}
{{- include "graft.chooseEnv" . }}
{{- end }}
{{- end }}
{{- end }}

{{/* By which a config file is chosen. */}}
{{- define "graft.chooseEnv" }}
- name: NODE_LABEL
  value: nvidia.com/device-plugin.config
- name: CONFIG_FILE_SRCDIR
  value: /available-configs
{{- include "graft.env" (dict "name" "DEFAULT_CONFIG" "value" .Values.config.default) }}
{{- include "graft.env" (dict "name" "FALLBACK_STRATEGIES" "value" .Values.config.fallbackStrategies) }}
{{- end }}

{{/* config-manager, once or for good, and which process it signals: dict "root" "name" "once" "process". */}}
{{- define "graft.configManager" -}}
- name: {{ .name }}
  image: {{ include "graft.image" .root }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  command: [config-manager]
  env:
  - name: ONESHOT
    value: {{ .once | quote }}
  - name: NODE_NAME
    valueFrom:
      fieldRef:
        fieldPath: spec.nodeName
  {{- include "graft.chooseEnv" .root | trim | nindent 2 }}
  - name: CONFIG_FILE_DST
    value: /config/config.yaml
  - name: SEND_SIGNAL
    value: {{ if .once }}"false"{{ else }}"true"{{ end }}
  - name: SIGNAL
    value: "1"
  - name: PROCESS_TO_SIGNAL
    value: {{ .process }}
  # The process that gets the signal runs as the same user: that needs no right.
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
  volumeMounts:
  - name: available-configs
    mountPath: /available-configs
    readOnly: true
  - name: config
    mountPath: /config
{{- end }}

{{- define "graft.configMounts" -}}
{{- if include "graft.hasConfig" . }}
{{- if eq .Values.configSelection "sidecar" }}
- name: config
  mountPath: /config
{{- end }}
- name: available-configs
  mountPath: /available-configs
  readOnly: true
{{- end }}
{{- end }}

{{- define "graft.configVolumes" -}}
{{- if include "graft.hasConfig" . }}
{{- if eq .Values.configSelection "sidecar" }}
- name: config
  emptyDir: {}
{{- end }}
- name: available-configs
  configMap:
    name: {{ include "graft.configMap" . }}
{{- end }}
{{- end }}

{{/* The driver, and what is known of it since the last boot. */}}
{{- define "graft.driverMounts" -}}
- name: driver-root
  mountPath: /driver-root
  readOnly: true
  mountPropagation: HostToContainer
- name: state
  mountPath: /run/graft
{{- end }}

{{- define "graft.driverVolumes" -}}
- name: driver-root
  hostPath:
    path: {{ default "/" .Values.nvidiaDriverRoot }}
    type: DirectoryOrCreate
- name: state
  hostPath:
    path: /run/graft
    type: DirectoryOrCreate
{{- end }}

{{/* The fields of pods that both DaemonSets have. */}}
{{- define "graft.podFields" -}}
priorityClassName: {{ .Values.priorityClassName }}
{{- with .Values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{ toYaml . }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
{{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
{{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
{{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The environment of the device plugin. */}}
{{- define "graft.pluginEnv" -}}
{{- include "graft.sharedEnv" . }}
- name: NVIDIA_DRIVER_ROOT
  value: {{ default "/" .Values.nvidiaDriverRoot }}
{{- include "graft.env" (dict "name" "PASS_DEVICE_SPECS" "value" .Values.compatWithCPUManager) }}
{{- if .Values.deviceListStrategy }}
{{- include "graft.env" (dict "name" "DEVICE_LIST_STRATEGY" "value" .Values.deviceListStrategy) }}
{{- end }}
{{- include "graft.env" (dict "name" "DEVICE_ID_STRATEGY" "value" .Values.deviceIDStrategy) }}
{{- include "graft.env" (dict "name" "GDRCOPY_ENABLED" "value" .Values.gdrcopyEnabled) }}
{{- include "graft.env" (dict "name" "GDS_ENABLED" "value" .Values.gdsEnabled) }}
{{- include "graft.env" (dict "name" "MOFED_ENABLED" "value" .Values.mofedEnabled) }}
{{- include "graft.env" (dict "name" "NVIDIA_CDI_HOOK_PATH" "value" .Values.cdi.nvidiaHookPath) }}
{{- include "graft.env" (dict "name" "CDI_FEATURE_FLAGS" "value" .Values.cdi.featureFlags) }}
{{- include "graft.env" (dict "name" "MPS_ROOT" "value" .Values.mps.root) }}
{{- if .Values.respectLeases }}
- name: RESPECT_LEASES
  value: "true"
{{- end }}
{{- if .Values.cdiLateMounts }}
- name: CDI_LATE_MOUNTS
  value: "true"
{{- end }}
{{- if not .Values.healthChecks }}
- name: DP_DISABLE_HEALTHCHECKS
  value: all
{{- end }}
{{- if .Values.metricsPort }}
- name: LISTEN_ADDRESS
  value: "{{ .Values.metricsPort }}"
{{- end }}
{{- include "graft.configEnv" . }}
{{- end }}

{{/* The environment of gpu-feature-discovery. */}}
{{- define "graft.gfdEnv" -}}
{{- include "graft.sharedEnv" . }}
- name: NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: GFD_USE_NODE_FEATURE_API
  value: {{ .Values.nfd.enableNodeFeatureApi | quote }}
{{- include "graft.env" (dict "name" "GFD_NO_TIMESTAMP" "value" .Values.gfd.noTimestamp) }}
{{- include "graft.env" (dict "name" "GFD_SLEEP_INTERVAL" "value" .Values.gfd.sleepInterval) }}
{{- include "graft.configEnv" . }}
{{- end }}
