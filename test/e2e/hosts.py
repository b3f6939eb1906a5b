"""Hosts that are network namespaces of this machine, and a switch between them whose cables fail on purpose.

Each host has one virtual link, a tap device. The switch is a thread that passes frames from one to the others: it may drop some of
them, keep each for a while, or all of them for good. Nothing leaves the machine; no kernel module for queues (netem) is needed.
"""

import fcntl
import heapq
import itertools
import os
import random
import select
import shutil
import struct
import subprocess
import threading
import time
from dataclasses import dataclass

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x2, 0x1000
FRAME = 1 << 16
NUMBERS = itertools.count()


def why_not():
    """A sentence where hosts are not possible here, else nothing."""
    missing = [tool for tool in ("ip", "unshare") if shutil.which(tool) is None]
    if missing:
        return f"hosts need {' and '.join(missing)} (Debian packages iproute2, util-linux)"
    try:
        with Network(1):
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        text = getattr(error, "stderr", None) or str(error)
        return f"network namespaces and tap devices are not permitted here: {text.strip()}"


@dataclass
class Cable:
    """Between a host and the switch, both ways."""

    delay: float = 0  # s that a frame is under way
    loss: float = 0  # share of frames that do not arrive
    cut: bool = False  # none arrives; neither end is told


class Host:
    def __init__(self, network, number):
        self.name = f"{network.name}h{number}"
        self.address = f"10.213.{network.number % 250}.{number + 1}"
        self.cable = Cable()
        self.tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.tap, TUNSETIFF, struct.pack("16sH22x", self.name.encode(), IFF_TAP | IFF_NO_PI))
        ip("netns", "add", self.name)
        ip("link", "set", self.name, "netns", self.name)
        ip("-n", self.name, "addr", "add", f"{self.address}/24", "dev", self.name)
        self.set_link("up")
        ip("-n", self.name, "link", "set", "lo", "up")

    def set_link(self, state):
        ip("-n", self.name, "link", "set", self.name, state)

    def command(self, words):
        """Runs on this host, which has a name of its own."""
        return ["ip", "netns", "exec", self.name, "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.name, *words]

    def close(self):
        os.close(self.tap)
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True, timeout=20)


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=20)


class Network:
    """`with Network(4) as network`: hosts that reach each other."""

    def __init__(self, hosts, seed=0):
        self.number = os.getpid() + next(NUMBERS)
        self.name = f"ds{self.number % 100000}"
        self.random, self.frames = random.Random(seed), 0
        self.hosts, self.closing = [], False
        try:
            for number in range(hosts):
                self.hosts.append(Host(self, number))
        except BaseException:
            self.close_hosts()
            raise
        self.thread = threading.Thread(target=self.switch, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing = True
        self.thread.join()
        self.close_hosts()

    def close_hosts(self):
        for host in self.hosts:
            host.close()

    def switch(self):
        ports = {host.tap: host for host in self.hosts}
        waiting = select.poll()
        for tap in ports:
            waiting.register(tap, select.POLLIN)
        learnt, under_way, order = {}, [], itertools.count()  # Ethernet address: host; (due, order, host, frame)
        while not self.closing:
            pause = under_way[0][0] - time.monotonic() if under_way else 0.05
            for tap, _ in waiting.poll(max(0, min(pause, 0.05)) * 1000):
                for frame in read_frames(tap):
                    source = ports[tap]
                    learnt[frame[6:12]] = source
                    target = learnt.get(frame[:6])
                    for host in [target] if target else self.hosts:
                        if host is not source and not self.is_lost(source.cable, host.cable):
                            due = time.monotonic() + source.cable.delay + host.cable.delay
                            heapq.heappush(under_way, (due, next(order), host, frame))
            while under_way and under_way[0][0] <= time.monotonic():
                _, _, host, frame = heapq.heappop(under_way)
                self.deliver(host, frame)

    def is_lost(self, *cables):
        return any(cable.cut or (cable.loss > 0 and self.random.random() < cable.loss) for cable in cables)

    def deliver(self, host, frame):
        try:
            if not host.cable.cut:
                os.write(host.tap, frame)
                self.frames += 1
        except OSError:  # its link is down, or it takes no more: lost, as on a cable
            pass


def read_frames(tap):
    """Those that wait, at most some."""
    for _ in range(64):
        try:
            yield os.read(tap, FRAME)
        except OSError:
            return
