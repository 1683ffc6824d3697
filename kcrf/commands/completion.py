"""kcrf completion: a script by which a shell completes commands and options."""

from argparse import Namespace

EPILOG = """The script works in bash and zsh. To complete from now on, add this line to ~/.bashrc or ~/.zshrc:
  eval "$(kcrf completion)\""""
_SCRIPT = """\
if [ -n "$ZSH_VERSION" ]; then autoload -U +X compinit && compinit; autoload -U +X bashcompinit && bashcompinit; fi
_kcrf() {{
  local words
  case "${{COMP_WORDS[1]}}" in
{options}
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then words="help {commands}"; fi
  if [ "${{COMP_WORDS[1]}}" = help ]; then words="{commands}"; fi
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _kcrf kcrf"""


def run(options: Namespace) -> None:
    from kcrf.commands.main import command_parsers

    parsers = command_parsers()
    lines = [f'    {name}) words="{" ".join(parser.options())}" ;;' for name, parser in parsers.items()]
    print(_SCRIPT.format(options="\n".join(lines), commands=" ".join(parsers)))
