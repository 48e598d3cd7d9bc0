/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completion: scripts by which shells complete this program's command line (SPEC ctk-and-cdi 1.0).
 * The scripts get the candidates from the program's tables through --generate-shell-completion, so
 * they also suit later versions.
 */
#include <string.h>

#include "base/cleanup.h"
#include "cli/ctk/ctk.h"

#define MARK "--generate-shell-completion"

/*
 * bash splits words at '='. Each '=' is dropped, since "--name value" means the same. Without
 * candidates bash completes file names.
 */
static const char bash[] = "# bash completion for nvidia-ctk\n"
			   "_nvidia_ctk()\n"
			   "{\n"
			   "\tlocal cur=${COMP_WORDS[COMP_CWORD]} words=() word candidates\n"
			   "\tfor word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
			   "\t\t[[ $word == = ]] || words+=(\"$word\")\n"
			   "\tdone\n"
			   "\t[[ $cur != = ]] || cur=''\n"
			   "\t[[ $cur != -* ]] || words+=(\"$cur\")\n"
			   "\tcandidates=$(\"${COMP_WORDS[0]}\" \"${words[@]}\" " MARK " 2>/dev/null)\n"
			   "\t[[ $cur == -* ]] || candidates=$(grep -v '^-' <<<\"$candidates\")\n"
			   "\tCOMPREPLY=($(compgen -W \"$candidates\" -- \"$cur\"))\n"
			   "\treturn 0\n"
			   "}\n"
			   "complete -o default -F _nvidia_ctk nvidia-ctk\n";

/* In a directory of $fpath the text defines the function; when sourced it registers it. */
static const char zsh[] = "#compdef nvidia-ctk\n"
			  "_nvidia_ctk() {\n"
			  "\tlocal cur=${words[CURRENT]}\n"
			  "\tlocal -a passed candidates\n"
			  "\tpassed=(\"${(@)words[2,CURRENT-1]}\")\n"
			  "\t[[ $cur != -* ]] || passed+=(\"$cur\")\n"
			  "\tcandidates=(${(f)\"$(\"${words[1]}\" \"${(@)passed}\" " MARK " 2>/dev/null)\"})\n"
			  "\t[[ $cur == -* ]] || candidates=(${candidates:#-*})\n"
			  "\tif (( $#candidates )); then\n"
			  "\t\tcompadd -a candidates\n"
			  "\telse\n"
			  "\t\t_files\n"
			  "\tfi\n"
			  "}\n"
			  "if [[ ${funcstack[1]} == _nvidia-ctk ]]; then\n"
			  "\t_nvidia_ctk \"$@\"\n"
			  "else\n"
			  "\tcompdef _nvidia_ctk nvidia-ctk\n"
			  "fi\n";

static const char fish[] = "# fish completion for nvidia-ctk\n"
			   "function __nvidia_ctk_candidates\n"
			   "\tset -l words (commandline -opc)\n"
			   "\tset -l cur (commandline -ct)\n"
			   "\tset -l program $words[1]\n"
			   "\tset -e words[1]\n"
			   "\tstring match -q -- '-*' $cur; and set -a words $cur\n"
			   "\tset -l candidates ($program $words " MARK " 2>/dev/null)\n"
			   "\tstring match -q -- '-*' $cur; or set candidates (string match -v -- '-*' $candidates)\n"
			   "\tif test (count $candidates) -gt 0\n"
			   "\t\tprintf '%s\\n' $candidates\n"
			   "\telse\n"
			   "\t\t__fish_complete_path $cur\n"
			   "\tend\n"
			   "end\n"
			   "complete -c nvidia-ctk -f -a '(__nvidia_ctk_candidates)'\n";

static const char pwsh[] =
    "# PowerShell completion for nvidia-ctk\n"
    "Register-ArgumentCompleter -Native -CommandName nvidia-ctk -ScriptBlock {\n"
    "\tparam($wordToComplete, $commandAst, $cursorPosition)\n"
    "\t$words = @($commandAst.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })\n"
    "\tif ($wordToComplete -and $wordToComplete -notlike '-*') { $words = @($words | Select-Object -SkipLast 1) }\n"
    "\t& nvidia-ctk @words '" MARK "' 2>$null | Where-Object { $_ -like \"$wordToComplete*\" } | ForEach-Object {\n"
    "\t\t[System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)\n"
    "\t}\n"
    "}\n";

static const struct {
	const char *shell, *script;
} scripts[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish }, { "pwsh", pwsh } };

static int print_completion(void *target, struct graft_error *err)
{
	const struct ctk_base *base = target;
	const char *shell = base->argc > 0 ? base->argv[0] : "";
	struct graft_buffer out = { .max = 0 };

	for (size_t i = 0; i < GRAFT_COUNT(scripts); i++) {
		if (strcmp(shell, scripts[i].shell) == 0) {
			graft_buffer_string(&out, scripts[i].script);
			return ctk_print(base->ctk, &out);
		}
	}
	return graft_fail(err, GRAFT_INVALID, 0, "unknown shell '%s', available shells are bash, zsh, fish, pwsh",
			  shell);
}

const struct graft_command ctk_completion = {
	.name = "completion",
	.arguments = "bash|zsh|fish|pwsh",
	.summary = "Print a shell completion script",
	.max_arguments = -1,
	.hidden = true,
	.go_style = true,
	.interspersed = true,
	CTK_WORK(print_completion, struct ctk_base),
};

bool ctk_is_completion_request(int argc, char *const *argv)
{
	return argc > 1 && strcmp(argv[argc - 1], MARK) == 0;
}
