"""What `sdk --install-completion` installs for bash and zsh, in place of Typer's scripts."""

from __future__ import annotations

# Bash divides words at = : and @ as well, so --target=arm64, label:desk and arm64@pi4 come in parts: they are put
# together for us, and what bash keeps of the word is taken off what we offer. A folder is not the end of a word.
_BASH = r"""
%(complete_func)s() {
    local rest=$COMP_LINE part place value kept breaks= letter
    local -a words=()
    for ((place = 0; place <= COMP_CWORD; place++)); do
        part=${COMP_WORDS[place]}
        if ((place > 0)) && [[ -n $rest && $rest != [[:blank:]]* ]]; then
            words[${#words[@]} - 1]+=$part
        else
            words+=("$part")
        fi
        rest=${rest#"${rest%%%%[![:blank:]]*}"}
        rest=${rest#"$part"}
    done
    value=${words[${#words[@]} - 1]}
    local IFS=$'\n'
    COMPREPLY=( $( env COMP_WORDS="${words[*]}" \
                   COMP_CWORD=$((${#words[@]} - 1)) \
                   %(autocomplete_var)s=complete_bash "$1" ) )
    [[ $value == --*=* ]] && value=${value#*=}
    for letter in = : @; do
        [[ $COMP_WORDBREAKS == *$letter* ]] && breaks+=$letter
    done
    if [[ -n $breaks && $value == *[$breaks]* ]]; then
        kept=${value%%"${value##*[$breaks]}"}
        COMPREPLY=( "${COMPREPLY[@]#"$kept"}" )
    fi
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace
    return 0
}

complete -o default -F %(complete_func)s %(prog_name)s
"""
# In zsh --target=arm64 is one word, of which only what follows the = is completed.
_ZSH = r"""
#compdef %(prog_name)s

%(complete_func)s() {
  local typed="${words[1,$CURRENT]}"
  [[ $PREFIX == --*=* ]] && compset -P 1 '*=' && words[CURRENT]=$PREFIX
  eval $(env _TYPER_COMPLETE_ARGS="$typed" %(autocomplete_var)s=complete_zsh %(prog_name)s)
}

compdef %(complete_func)s %(prog_name)s
"""


def use_own_scripts() -> None:
    """Give Typer our scripts, which complete values that have =, : or @ in them.

    Typer has no place to pass them, so they take the place of its own: in the table that `--install-completion` reads,
    and in the classes that answer `_SDK_COMPLETE=source_bash`. Where a version has them elsewhere, its own stay.
    """
    from typer import _completion_classes, _completion_shared

    scripts = getattr(_completion_shared, "_completion_scripts", {})
    for shell, class_name, script in (("bash", "BashComplete", _BASH), ("zsh", "ZshComplete", _ZSH)):
        scripts[shell] = script
        shell_class = getattr(_completion_classes, class_name, None)
        if shell_class is not None:
            shell_class.source_template = script
