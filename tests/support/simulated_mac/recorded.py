"""Outputs of the tools of macOS 14, 15 and 26, on Apple silicon and Intel.

They follow the manual pages, Apple's published sources (vm_stat, sysctl, pmset, security) and outputs in public reports. None was
recorded on a Mac of this project.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Outputs = Mapping[str, str | bytes]

_VM_STAT = """Mach Virtual Memory Statistics: (page size of {page} bytes)
Pages free:                             {free:>12}.
Pages active:                                 310451.
Pages inactive:                               308157.
Pages speculative:                              1211.
Pages throttled:                                   0.
Pages wired down:                             118391.
Pages purgeable:                        {purgeable:>12}.
"Translation faults":                     1288317205.
Pages copy-on-write:                        62401853.
Pages zero filled:                         711238841.
Pages reactivated:                          22019388.
Pages purged:                                1998231.
File-backed pages:                      {files:>12}.
Anonymous pages:                              397305.
Pages stored in compressor:                   610123.
Pages occupied by compressor:                 248120.
Decompressions:                              9182773.
Compressions:                               12410277.
Pageins:                                    18114519.
Pageouts:                                      96214.
Swapins:                                           0.
Swapouts:                                          0.
"""
_PMSET = """System-wide power settings:
Currently in use:
 standby              1
 Sleep On Power Button 1
 hibernatefile        /var/vm/sleepimage
 powernap             1
 networkoversleep     0
 disksleep            10
 sleep                1 (sleep prevented by powerd, bluetoothd)
 hibernatemode        3
 ttyskeepawake        1
 displaysleep         10
 tcpkeepalive         1
 {power}
 womp                 1
"""
_MOUNT = """/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
devfs on /dev (devfs, local, nobrowse)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse, protect, root data)
map auto_home on /System/Volumes/Data/home (autofs, automounted, nobrowse)
//ann@nas._smb._tcp.local/my%20share on /Volumes/my share (smbfs, nodev, nosuid, mounted by ann)
"""
PROCESSES = """/sbin/launchd
/usr/libexec/logd
/System/Library/CoreServices/loginwindow.app/Contents/MacOS/loginwindow console
/Applications/Safari.app/Contents/MacOS/Safari
/System/Applications/Utilities/Terminal.app/Contents/MacOS/Terminal
-zsh
python -m app.main --batch --model mlx-community/Qwen3-VL-4B-Instruct-4bit
"""
_ENTRY = """keychain: "/Users/ann/Library/Keychains/login.keychain-db"
version: 512
class: "genp"
attributes:
    0x00000007 <blob>="rashomon"
    0x00000008 <blob>=<NULL>
    "acct"<blob>="OPENAI_API_KEY"
    "cdat"<timedate>=0x32303236303130353132303030305A00  "20260105120000Z\\000"
    "svce"<blob>="rashomon"
    "type"<uint32>=<NULL>
"""


def _outputs(
    memory: int,
    chip: str,
    version: str,
    *,
    page: int = 16384,
    pages: tuple[int, int, int] = (5474, 222514, 4712),
    swap: str = "total = 0.00M  used = 0.00M  free = 0.00M  (encrypted)\n",
    pressure: str = "1\n",
    power: str = "lowpowermode         0",
    processes: str = "",
    translated: str = "0\n",
) -> Outputs:
    return {
        "sysctl -n hw.memsize": f"{memory * 2**30}\n",
        "sysctl -n machdep.cpu.brand_string": f"{chip}\n",
        "sysctl -n kern.osversion": "25B78\n",
        "sysctl -n iogpu.wired_limit_mb": "0\n",
        "sysctl -n sysctl.proc_translated": translated,
        "sysctl -n vm.swapusage": swap,
        "sysctl -n kern.memorystatus_vm_pressure_level": pressure,
        "vm_stat": _VM_STAT.format(page=page, free=pages[0], files=pages[1], purgeable=pages[2]),
        "pmset -g": _PMSET.format(power=power),
        "ps -axo command=": PROCESSES + processes,
        "ps": " 204800\n",
        "mount": _MOUNT,
        "sw_vers -productVersion": f"{version}\n",
        "security find-generic-password -s rashomon -a OPENAI_API_KEY": _ENTRY,
        "caffeinate": "",
        "open": "",
        "pbcopy": "",
    }


@dataclass(frozen=True)
class Machine:
    """A Mac: what Python is told, and what its tools print by their command lines. ``reported`` is the version Python is told."""

    reported: str
    kernel: str
    processor: str
    outputs: Outputs = field(default_factory=dict)


_OLLAMA = "/Applications/Ollama.app/Contents/Resources/ollama runner --ollama-engine --port 52344\n"
_LM_STUDIO = "/Applications/LM Studio.app/Contents/MacOS/LM Studio\n"

MACHINES: Mapping[str, Machine] = {
    "M1, macOS 14": Machine("14.6.1", "23.6.0", "arm64", _outputs(16, "Apple M1", "14.6.1")),
    "M3 Pro under pressure, macOS 15": Machine(
        "15.5",
        "24.5.0",
        "arm64",
        _outputs(
            36,
            "Apple M3 Pro",
            "15.5",
            pages=(3021, 41022, 118),
            swap="total = 9216.00M  used = 7935.31M  free = 1280.69M  (encrypted)\n",
            pressure="2\n",
            power="lowpowermode         1",
            processes=_OLLAMA + _LM_STUDIO,
        ),
    ),
    # Python that was built for an older system is told version 16.
    "M4 Max, macOS 26": Machine(
        "16.1", "25.1.0", "arm64", _outputs(128, "Apple M4 Max", "26.1", power="powermode            1", pressure="4\n")
    ),
    "Intel, macOS 14": Machine(
        "14.7.1",
        "23.6.0",
        "x86_64",
        _outputs(32, "Intel(R) Core(TM) i9-9980HK CPU @ 2.40GHz", "14.7.1", page=4096, pages=(90211, 402133, 20480)),
    ),
    "Rosetta, macOS 15": Machine("15.5", "24.5.0", "x86_64", _outputs(24, "Apple M2", "15.5", translated="1\n")),
    "German, macOS 15": Machine(
        "15.5", "24.5.0", "arm64", _outputs(24, "Apple M2", "15.5", swap="total = 4,00G  used = 1,50G  free = 2,50G\n")
    ),
}
SILENT = Machine("15.5", "24.5.0", "arm64")
"""A Mac whose tools fail."""

GARBLED = Machine(
    "",
    "",
    "arm64",
    dict.fromkeys(
        ("sysctl", "vm_stat", "ps"), b"\xff\xfe\x00 used = ...M\n lowpowermode\n -1 \n page size of many bytes" * 50
    )
    | dict.fromkeys(("mount", "pmset", "sw_vers"), b"\x00" * 5000 + b" on ("),
)
"""A Mac whose tools print what none of them would."""
