"""`kbroker completion`: the script that lets a shell complete commands, options, names of topics and groups.

It is made from the parsers, so that it knows what they know. Names come from the broker, by the same command.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from kbroker.cli import connection
from kbroker.cli.output import say
from kbroker.exit_codes import OK

_DESCRIPTION = """\
Print the completion script of a shell, or the names that it asks the broker for.

    bash:  source <(kbroker completion bash)                 in ~/.bashrc
    zsh:   source <(kbroker completion zsh)                  in ~/.zshrc, after compinit
    fish:  kbroker completion fish | source                  in ~/.config/fish/config.fish"""

_BASH = """\
_kbroker_names() {{
    local address=()
    if [[ "$COMP_LINE" =~ [[:space:]](-b|--bootstrap|--bootstrap-server)[[:space:]=]+([^[:space:]]+) ]]; then
        address=(-b "${{BASH_REMATCH[2]}}")
    fi
    compopt +o filenames 2>/dev/null
    COMPREPLY=($(compgen -W "$(kbroker completion "$1" "${{address[@]}}" 2>/dev/null)" -- "$2"))
}}
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
    if [[ "$current" != -* ]]; then
        case "$path" in
{names}
        esac
        if [ "${{#COMPREPLY[@]}}" -eq 0 ]; then
            COMPREPLY=($(compgen -f -- "$current"))
        fi
    fi
}}
complete -o filenames -F _kbroker kbroker
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"
_FISH = """\
function __kbroker_at
    set -l path ""
    for word in (commandline -opc)
        if contains -- "$path/$word" {paths}
            set path "$path/$word"
        end
    end
    test "$path" = "$argv[1]"
end
function __kbroker_names
    set -l words (commandline -opc)
    set -l address
    for i in (seq 2 (count $words))
        if contains -- $words[(math $i - 1)] -b --bootstrap --bootstrap-server
            set address -b $words[$i]
        end
    end
    kbroker completion $argv[1] $address 2>/dev/null
end
complete -c kbroker -f
"""
_TAKES_FILE = ("--file", "--config", "--data")
_NAMES = {
    "topics": "topics",
    "topic": "topics",
    "groups": "groups",
    "group": "groups",
}  # dest → what it names
_PATIENCE = 2  # seconds: who presses Tab does not wait longer


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "completion",
        help="print the completion script of a shell",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=(*_SCRIPTS, "topics", "groups"))
    connection.add_connection_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if script := _SCRIPTS.get(arguments.what):
        from kbroker.cli import make_parser

        say(script(make_parser()))
        return OK
    arguments.timeout = min(arguments.timeout, _PATIENCE)
    with connection.admin(arguments) as client:
        if arguments.what == "topics":
            names = [name for name in client.list_topics() if not name.startswith("__")]
        else:
            names = [group["group_id"] for group in client.list_groups()]
    for name in sorted(names):
        say(name)
    return OK


def bash_script(parser: argparse.ArgumentParser) -> str:
    nodes = list(walk(parser))
    paths = [f'"/{"/".join(path)}"' for path, _ in nodes if path]
    words = [
        f'        "{_path(path)}") COMPREPLY=($(compgen -W "{" ".join(_words(node))}" -- "$current")) ;;'
        for path, node in nodes
    ]
    choices = []
    names = []
    for path, node in nodes:
        for action in node._actions:
            what = _names(node, action)
            for flag in action.option_strings:
                if action.choices:
                    given = f'COMPREPLY=($(compgen -W "{" ".join(map(str, action.choices))}" -- "$current"))'
                    choices.append(f'        "{_path(path)}:{flag}") {given}; return ;;')
                elif what:
                    choices.append(
                        f'        "{_path(path)}:{flag}") _kbroker_names {what} "$current"; return ;;'
                    )
            if what and not action.option_strings:
                names.append(f'            "{_path(path)}") _kbroker_names {what} "$current"; return ;;')
    return _BASH.format(
        paths="|".join(paths),
        files="|".join(_TAKES_FILE),
        choices="\n".join(choices),
        words="\n".join(words),
        names="\n".join(names),
    )


def zsh_script(parser: argparse.ArgumentParser) -> str:
    return _ZSH + bash_script(parser)


def fish_script(parser: argparse.ArgumentParser) -> str:
    nodes = list(walk(parser))
    paths = " ".join(_path(path) for path, _ in nodes if path)
    lines = []
    for path, node in nodes:
        at = f"complete -c kbroker -n '__kbroker_at \"{_path(path)}\"'"
        for action in node._actions:
            if action.help == argparse.SUPPRESS:
                continue
            flags = "".join(
                f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}"
                for flag in action.option_strings
            )
            lines += [f"{at}{flags}{rest}" for rest in _fish_values(node, action)]
    return _FISH.format(paths=paths) + "\n".join(lines)


def _fish_values(parser: argparse.ArgumentParser, action: argparse.Action) -> Iterator[str]:
    """What follows a flag, or stands without one."""
    what = _names(parser, action)
    takes = " -r" if action.option_strings and action.nargs != 0 else ""
    described = _fish_text(action.help) if action.option_strings else ""
    if isinstance(action, argparse._SubParsersAction):
        for choice in action._choices_actions:
            yield f" -a {choice.dest}{_fish_text(choice.help)}"
    elif action.choices:
        yield f"{takes} -a '{' '.join(map(str, action.choices))}'{described}"
    elif what:
        yield f"{takes} -a '(__kbroker_names {what})'{described}"
    elif set(action.option_strings) & set(_TAKES_FILE) or action.dest in ("file", "files"):
        yield f"{takes} -F{described}"
    elif action.option_strings:
        yield f"{takes}{described}"


def _fish_text(text: str | None) -> str:
    plain = (text or "").replace("%%", "%").replace("\\", "\\\\").replace("'", "\\'")
    return f" -d '{plain}'" if plain else ""


def _names(parser: argparse.ArgumentParser, action: argparse.Action) -> str | None:
    """What of the broker's an argument names."""
    asks_a_broker = any(each.dest == "bootstrap" for each in parser._actions)
    makes_topics = any(each.dest == "if_not_exists" for each in parser._actions)
    return _NAMES.get(action.dest) if asks_a_broker and not makes_topics else None


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
        if action.option_strings and action.help != argparse.SUPPRESS:
            words += [flag for flag in action.option_strings if flag.startswith("--")]
        elif action.choices:
            words += map(str, action.choices)
    return words


_SCRIPTS = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}
