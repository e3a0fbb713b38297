"""`kbroker completion`: the script that lets a shell complete kbroker's commands and options.

It is made from the parsers, so that it knows what they know.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from kbroker.cli import OK
from kbroker.cli.output import say

_DESCRIPTION = """\
Print the completion script of a shell.

    bash:  source <(kbroker completion bash)                 in ~/.bashrc
    zsh:   source <(kbroker completion zsh)                  in ~/.zshrc, after compinit"""

_BASH = """\
_kbroker() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" path="" word i
    for ((i = 1; i < COMP_CWORD; i++)); do
        word="${{COMP_WORDS[i]}}"
        case "$path/$word" in
            {paths}) path="$path/$word" ;;
        esac
    done
    case "$previous" in
        {files}) COMPREPLY=($(compgen -f -- "$current")); return ;;
    esac
    case "$path:$previous" in
{choices}
    esac
    case "$path" in
{words}
    esac
    if [ "${{#COMPREPLY[@]}}" -eq 0 ] && [[ "$current" != -* ]]; then
        COMPREPLY=($(compgen -f -- "$current"))
    fi
}}
complete -o filenames -F _kbroker kbroker
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"
_TAKES_FILE = ("--file", "--config", "--data")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "completion",
        help="print the completion script of a shell",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=("bash", "zsh"))
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from kbroker.cli import make_parser

    text = bash_script(make_parser())
    say((_ZSH if arguments.shell == "zsh" else "") + text)
    return OK


def bash_script(parser: argparse.ArgumentParser) -> str:
    nodes = list(walk(parser))
    paths = [f'"/{"/".join(path)}"' for path, _ in nodes if path]
    words = [
        f'        "{_path(path)}") COMPREPLY=($(compgen -W "{" ".join(_words(node))}" -- "$current")) ;;'
        for path, node in nodes
    ]
    choices = [
        f'        "{_path(path)}:{flag}") COMPREPLY=($(compgen -W "{" ".join(map(str, action.choices))}" '
        '-- "$current")); return ;;'
        for path, node in nodes
        for action in node._actions
        if action.option_strings and action.choices
        for flag in action.option_strings
    ]
    return _BASH.format(
        paths="|".join(paths), files="|".join(_TAKES_FILE), choices="\n".join(choices), words="\n".join(words)
    )


def walk(
    parser: argparse.ArgumentParser, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Every command and action with its parser."""
    yield path, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield from walk(child, (*path, name))


def _path(path: tuple[str, ...]) -> str:
    return "".join(f"/{name}" for name in path)


def _words(parser: argparse.ArgumentParser) -> list[str]:
    words: list[str] = []
    for action in parser._actions:
        if action.option_strings:
            words += [flag for flag in action.option_strings if flag.startswith("--")]
        elif action.choices:
            words += map(str, action.choices)
    return words
