// SPDX-License-Identifier: Apache-2.0

// chart renders a Helm chart as "helm template" does, as far as charts of this project go: text/template with the functions of
// sprig, which Helm is built from, and those that Helm adds. Debian has no Helm.
//
//	chart [--namespace NAME] [--release NAME] [--service NAME] [--notes] CHART [VALUES.yaml...]
//
// Values of later files replace those of earlier ones; null takes a value away. Errors of templates end it, with the template's
// name and line.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type object = map[string]interface{}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart: "+err.Error())
		os.Exit(1)
	}
}

func read(path string) object {
	text, err := os.ReadFile(path)
	must(err)
	value := object{}
	if err := yaml.UnmarshalStrict(text, &value); err != nil {
		must(fmt.Errorf("%s: %w", path, err))
	}
	return value
}

// merge puts what is given over the defaults: tables key by key, everything else whole.
func merge(defaults, given object) object {
	for key, value := range given {
		table, isTable := value.(object)
		below, wasTable := defaults[key].(object)
		switch {
		case isTable && wasTable:
			defaults[key] = merge(below, table)
		case value == nil:
			delete(defaults, key)
		default:
			defaults[key] = value
		}
	}
	return defaults
}

func functions(all *template.Template) template.FuncMap {
	funcs := sprig.TxtFuncMap()
	delete(funcs, "env")
	delete(funcs, "expandenv")
	funcs["include"] = func(name string, data interface{}) (string, error) {
		var out strings.Builder
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	funcs["toYaml"] = func(value interface{}) string {
		text, err := yaml.Marshal(value)
		must(err)
		return strings.TrimSuffix(string(text), "\n")
	}
	funcs["toJson"] = func(value interface{}) string {
		text, err := json.Marshal(value)
		must(err)
		return string(text)
	}
	funcs["fail"] = func(text string) (string, error) { return "", errors.New(text) }
	funcs["required"] = func(text string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, errors.New(text)
		}
		return value, nil
	}
	return funcs
}

func main() {
	namespace := flag.String("namespace", "default", "")
	release := flag.String("release", "release-name", "")
	service := flag.String("service", "Helm", "")
	notes := flag.Bool("notes", false, "print NOTES.txt alone")
	flag.Parse()
	folder := flag.Arg(0)
	values := read(filepath.Join(folder, "values.yaml"))
	for _, file := range flag.Args()[1:] {
		values = merge(values, read(file))
	}
	about := read(filepath.Join(folder, "Chart.yaml"))
	chart := object{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]}
	data := object{"Values": values, "Chart": chart, "Release": object{"Name": *release, "Namespace": *namespace, "Service": *service}}

	files, err := filepath.Glob(filepath.Join(folder, "templates", "*"))
	must(err)
	sort.Strings(files)
	// As Helm: what is not there is nothing, and is written as nothing.
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(err)
		_, err = all.New(filepath.Base(file)).Parse(string(text))
		must(err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "_") || (name == "NOTES.txt") != *notes {
			continue
		}
		var out bytes.Buffer
		must(all.ExecuteTemplate(&out, name, data))
		text := strings.ReplaceAll(out.String(), "<no value>", "")
		if strings.TrimSpace(text) == "" {
			continue
		}
		if *notes {
			fmt.Print(text)
			continue
		}
		fmt.Printf("---\n# Source: %s/templates/%s\n%s\n", about["name"], name, strings.Trim(text, "\n"))
	}
}
