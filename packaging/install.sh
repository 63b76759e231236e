#!/bin/sh
# Installs threadt from this directory, or removes it again: ./install.sh [--remove] [PREFIX]
# PREFIX is /usr/local for root and ~/.local for others. Nothing needs to be installed: bin/trace-cat works from here too.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
remove=false
if [ "${1:-}" = --remove ]; then
    remove=true
    shift
fi
case ${1:-} in
-*)
    echo "usage: $0 [--remove] [PREFIX]" >&2
    exit 2
    ;;
esac
if [ "$(id -u)" = 0 ]; then default=/usr/local; else default=$HOME/.local; fi
prefix=${1:-$default}

cd "$here"
find bin include lib share -type f | while read -r file; do
    if $remove; then
        rm -f "$prefix/$file"
    else
        mkdir -p "$prefix/$(dirname "$file")"
        # A library that running programs have mapped must not change: the new one gets another inode.
        cp "$file" "$prefix/$file.new"
        mv "$prefix/$file.new" "$prefix/$file"
    fi
done
if $remove; then
    for directory in share/threadt/sql share/threadt share/doc/threadt/docs/tour share/doc/threadt/docs share/doc/threadt; do
        rmdir "$prefix/$directory" 2>/dev/null || true
    done
    echo "threadt is removed from $prefix"
    exit
fi
echo "threadt is installed in $prefix"
case :$PATH: in
*":$prefix/bin:"*) echo "try: trace-cat run --report ls" ;;
*) echo "try: $prefix/bin/trace-cat run --report ls" ;;
esac
