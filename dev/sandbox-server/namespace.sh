#!/bin/sh
# Becomes the server inside a private view of this machine's filesystem: everything installed here, and the
# container's own /workspace, /tmp, /home, /root, /app, /var/tmp and /var/backups. Nothing is ever mounted or written on the host.
#
#   namespace.sh <node> <main.ts> [inside]
#
# Where a step is refused (no unshare, no user namespaces, a seccomp or AppArmor rule), the server starts with path
# mapping instead: a weaker likeness is better than no sandbox.

node=$1 main=$2 step=${3-outside}
disk=$MOORING_CONTAINER_ROOT
PATH=$PATH:/usr/sbin:/sbin

give_up() { exec env MOORING_ISOLATION=paths "$node" "$main"; }

if [ "$step" = outside ]; then
  flags=--mount
  unshare $flags true 2>/dev/null || flags="--user --map-root-user --mount"
  unshare $flags true 2>/dev/null || give_up
  exec unshare $flags /bin/sh "$0" "$node" "$main" inside
fi

private() { case $1 in /workspace | /tmp | /home | /root | /app | /var/tmp | /var/backups) true ;; *) false ;; esac; }

mkdir -p "$disk/.view" "$disk/workspace" "$disk/tmp" "$disk/home" "$disk/root" "$disk/app" "$disk/var/tmp" "$disk/var/backups" || give_up
chmod 1777 "$disk/tmp" "$disk/var/tmp"
mount -t tmpfs mooring "$disk/.view" 2>/dev/null || give_up
view=$disk/.view/root
mkdir "$disk/.view/changes" "$disk/.view/scratch" "$view" || give_up

# An overlay keeps what root changes outside its own directories (an apt-get install) away from the host. An ordinary
# user may not put one over /, and could not change those directories anyway: bind mounts then do.
if mount -t overlay mooring -o "lowerdir=/,upperdir=$disk/.view/changes,workdir=$disk/.view/scratch" "$view" 2>/dev/null; then
  # An overlay shows one filesystem only, so a directory below which another one is mounted is bound as a whole.
  bound=" proc sys dev "
  while read -r _ _ _ _ point _; do
    top=${point#/} top=${top%%/*}
    case "$bound" in *" $top "*) continue ;; esac
    [ -n "$top" ] && bound="$bound$top "
  done </proc/self/mountinfo
  for top in $bound; do
    private "/$top" || mount --rbind "/$top" "$view/$top" 2>/dev/null || :
  done
else
  for entry in /*; do
    if [ -L "$entry" ]; then
      ln -s "$(readlink "$entry")" "$view$entry"
    elif [ -d "$entry" ] && ! private "$entry"; then
      mkdir "$view$entry" && mount --rbind "$entry" "$view$entry" || give_up
    fi
  done
fi

for directory in /workspace /tmp /home /root /app /var/tmp /var/backups; do
  mkdir -p "$view$directory" 2>/dev/null || continue
  mount --bind "$disk$directory" "$view$directory" || give_up
done

# The disks of other containers lie beside this one, unless that is hidden already.
disks=${disk%/*}
if [ -n "$disks" ] && [ -d "$view$disks" ] && ! private "$disks"; then mount -t tmpfs mooring "$view$disks" || give_up; fi

# The program's own files get places of their own, for a developer's checkout and Node may lie in a hidden /home.
project=${main%/dev/sandbox-server/*}
own=$view/.mooring
mkdir -p "$own/bin" "$own/run" "$own/app/dev/sandbox-server" "$own/app/node_modules" || give_up
: >"$own/bin/node"
echo '{"type":"module"}' >"$own/app/package.json"
mount --bind "$node" "$own/bin/node" || give_up
mount --bind "$project/dev/sandbox-server" "$own/app/dev/sandbox-server" || give_up
mount --rbind "$project/node_modules" "$own/app/node_modules" || give_up
for directory in dev/sandbox-server node_modules; do
  mount -o remount,bind,ro "$own/app/$directory" 2>/dev/null || :
done

# What follows cannot be taken back, so the view is tried first.
cd "$view" && chroot . /usr/bin/env true 2>/dev/null || give_up
exec chroot . /usr/bin/env MOORING_ENTERED=1 HOME=/root "PATH=$PATH:/.mooring/bin" \
  /.mooring/bin/node /.mooring/app/dev/sandbox-server/main.ts
