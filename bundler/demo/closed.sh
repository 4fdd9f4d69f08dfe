#!/bin/sh
# The demo's closed half: closed.sh PYTHON BUNDLE KEY ROOT isolated|open
# The commands are those of the bundle's READ-ME. The exit code is the verdict's.
python=$1 bundle=$2 key=$3 root=$4
if [ "$5" = isolated ]; then
    # A new namespace's loopback is down; a closed host's is up.
    "$python" -c '
import fcntl, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
flags = struct.unpack("16sH14x", fcntl.ioctl(s, SIOCGIFFLAGS, struct.pack("16sH14x", b"lo", 0)))[1]
fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))
' || exit 1
fi
say() { printf '$ %s\n' "$*"; "$@"; }
airbundle="$root/bin/airbundle"
say "$python" "$bundle/airbundle-bootstrap.py" install --key "$key" --root "$root" --dir "$bundle" || exit
say "$airbundle" verify "$bundle" --key "$key" || exit
say "$airbundle" import "$bundle" --root "$root" --key "$key" || exit
say "$airbundle" install --root "$root" || exit
say "$airbundle" start --root "$root" || exit
trap '"$airbundle" stop --root "$root" >/dev/null 2>&1' INT TERM EXIT
say "$airbundle" accept --root "$root"
verdict=$?
say "$airbundle" report --root "$root" || exit
say "$airbundle" stop --root "$root" || exit
trap - EXIT
exit "$verdict"
