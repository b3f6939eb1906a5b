"""What simulated_sources.py changes in its copy of the runtime, beside the standard library's names.

An edit is (file, text, what stands for it). Each text stands exactly once in its file; where it no longer does, the build
fails and names the edit to write anew. Texts are the product's, before the library's names are replaced.
"""

CHANNEL = "runtime/comm/inprocess/InProcessChannel.cpp"
GROUP = "runtime/comm/inprocess/InProcessGroup.cpp"
TRANSPORT = "runtime/comm/inprocess/InProcessTransport.cpp"
COUNTER = "runtime/device/Counter.h"
DEVICE = "runtime/device/cpu/CpuDevice.cpp"
CPU_QUEUE = "runtime/device/cpu/CpuQueue.cpp"
EXECUTOR = "runtime/executor/Executor.cpp"
GUARD = "runtime/device/RunGuard.h"
LOCAL_RANKS = "runtime/session/LocalRanks.cpp"
QUEUE = "runtime/device/HostThreadQueue.cpp"
RUNNING_CLOCK = "core/RunningClock.h"
STANDING = "runtime/device/QueueStanding.cpp"
STORAGE = "runtime/executor/Storage.cpp"
STORE = "runtime/comm/tcp/TcpStore.cpp"
STORE_SERVER = "runtime/comm/tcp/StoreServer.cpp"
TCP_PLANE = "runtime/comm/tcp/TcpControlPlane.cpp"
WAIT_POINT = "runtime/device/WaitPoint.h"


def around(call, place, rank, what):
    return f"ds::sim::after(ds::sim::Place::{place}, {rank}, {what}, [&] {{ return {call}; }})"


# Where faults happen (Faults.h). Those of collectives and messages are in FaultyMover.cpp, which needs no edit.
BEGIN = "device_.beginRun(run.step)"
REFUSED = "  if (const std::optional<kernels::RefusedValue> refused = device_.refused())"
PLACE = "  const uint64_t place = submitted_;"
WAIT = "wait(*event, reached - delay)"
TASK = "command.task->run(submission.call, *this)"
SIGNAL = "signal(*event, reached)"
COUNTED = "static_cast<CpuEvent &>(event).counter.wait(value)"
MEETING = "group_.meet(rank_, collective)"
HOOKS = [
    (EXECUTOR, BEGIN, around(BEGIN, "BeginRun", "position_.rank", '"a run"')),
    (EXECUTOR, REFUSED, '  if (const Status status = ds::sim::fault(ds::sim::Place::Finish, position_.rank, "a run"); '
                        "!status.ok())\n    device_.fail(status);\n" + REFUSED),
    (QUEUE, PLACE, "  (void)ds::sim::fault(ds::sim::Place::Submit, standing_.rank(), standing_.name().c_str());\n" + PLACE),
    (QUEUE, WAIT, around(WAIT, "Wait", "standing_.rank()", "command.what")),
    (QUEUE, TASK, f"ds::sim::task(standing_.rank(), command.what, [&] {{ return {TASK}; }})"),
    (QUEUE, SIGNAL, around(SIGNAL, "Signal", "standing_.rank()", "command.what")),
    # A look costs as much as a switch here: few, then to sleep.
    (WAIT_POINT, "i < 32;", "i < ds::sim::looks();"),
    (WAIT_POINT, "awake{50}", "awake{0}"),
    # Who sleeps a piece at a time is not missed for long when nobody wakes it.
    (RUNNING_CLOCK, "piece{100}", "piece{1 << 30}"),
    # So that few bytes make several pieces.
    (TCP_PLANE, "pieceBytes = maxValueBytes", "pieceBytes = 64"),
    # It reads files of the machine that the simulation runs on.
    (STORAGE, "device.executes() ? availableMemory() : UINT64_MAX", "UINT64_MAX"),
]


def drop(file, text):
    """The statement is left out."""
    return lambda has: (file, text, f"if (!{has}) {{ {text} }}")


def instead(file, text, other, prefix=""):
    """Another expression. `prefix`: what stands before it, where the text alone stands more than once."""
    return lambda has: (file, prefix + text, f"{prefix}({has} ? ({other}) : ({text}))")


def before(file, text, other):
    """A statement more."""
    return lambda has: (file, text, f"if ({has}) {{ {other} }}\n{text}")


# Bugs that a process has if it is asked for one by name: name -> (what it does, edits).
PLANTED = {
    "event-wakes-nobody": ("an event that is raised wakes no queue that sleeps", [drop(COUNTER, "changes_.notify();")]),
    "late-sleeper": ("a thread looks before it counts itself as asleep", [
        before(WAIT_POINT, "    sleepers_.fetch_add(1);\n    while (!condition())",
               "bool holds = condition(); sleepers_.fetch_add(1); while (!holds) { wake_.wait(lock); holds = condition(); } "
               "sleepers_.fetch_sub(1); return;")]),
    "notify-without-lock": ("a notification may come between a thread's look and its sleep", [
        before(WAIT_POINT, "    const std::lock_guard<std::mutex> lock(mutex_); // a sleeper", "wake_.notify_all(); return;")]),
    "failure-not-in-condition": ("a wait looks at its condition and not at the failure", [
        instead(GUARD, "point_.wait([&] { return guard_.failed() || condition(); })", "point_.wait(condition)")]),
    "failure-wakes-nobody": ("the first failure wakes nobody", [drop(GUARD, "wait->notify();")]),
    "failure-not-told": ("a device that fails tells no other rank", [instead(DEVICE, "agree_(status)", "status")]),
    "own-sentence-kept": ("ranks that fail at once each keep their own sentence", [instead(LOCAL_RANKS, "transport.failure()", "status")]),
    "waiter-blamed": ("the rank that is missing is blamed, though it waits itself", [instead(STANDING, "awaited.empty()", "true")]),
    "raiser-not-told": ("nobody knows which queue raises an event", [drop(EXECUTOR, "events_[event]->raisedBy(*queue);")]),
    "stop-not-told": ("a transport that is stopped tells no device", [drop(TRANSPORT, "callback_(status);")]),
    "events-not-reset": ("events keep the values of the run before", [drop(EXECUTOR, "event->reset();")]),
    "events-reset-late": ("events are reset when the queues are at work already", [
        drop(EXECUTOR, "event->reset();"),
        before(EXECUTOR, "recorded_.enqueued(run.program);", "for (Event *event : events_) event->reset();")]),
    "wait-dropped": ("a queue goes on one micro-batch before its event", [instead(CPU_QUEUE, COUNTED, COUNTED.replace("value", "value - 1"))]),
    "signal-before-task": ("a command's events are raised before it runs", [
        before(QUEUE, "    guard_.moved();\n    standing_.begins();",
               "for (Event *event : command.signals) static_cast<void>(signal(*event, reached ));")]),
    "stop-wakes-first": ("a thread that is to end is woken before it is told to", [
        before(QUEUE, "  stop_ = true;\n", "work_.notify(); stop_ = true; thread_.join(); return;")]),
    "idle-wakes-nobody": ("a queue that has done its work wakes nobody", [drop(QUEUE, "idle_.notify();")]),
    "finish-leaves-early": ("a failed run is over while a command is under way", [
        instead(QUEUE, "done_ >= all", "done_ >= all || guard_.failed()")]),
    "watchdog-blind": ("the watchdog looks away when nothing moves", [instead(QUEUE, "before == seen", "before != seen")]),
    "no-middle-meeting": ("a rank copies the others' sums before they are done", [
        instead(GROUP, MEETING, "Status::success()", prefix="AllReduce) {\n      if (Status status = ")]),
    "no-last-meeting": ("a rank leaves a collective while others read its memory", [
        before(GROUP, f"    return {MEETING};", "return Status::success();")]),
    "arrival-wakes-nobody": ("a rank that comes to a collective wakes nobody", [
        instead(GROUP, "arrivals_.notify()", "static_cast<void>(0)", prefix="places_[rank].arrived = meeting;\n  ")]),
    "taken-before-copied": ("a sender goes on before its message is copied", [
        before(CHANNEL, "  uint64_t bytes = 0;", "taken_ = mine; changes_.notify();")]),
    "offer-wakes-nobody": ("a message that is offered wakes nobody", [
        instead(CHANNEL, "changes_.notify()", "static_cast<void>(0)", prefix="offered_ = mine;\n  ")]),
    "loss-not-told": ("a process that has died is told to nobody", [
        instead(STORE_SERVER, "peer.rank && !peer.bye", "false")]),
    "failure-kept-back": ("the store tells nobody of a failure", [
        instead(STORE_SERVER, "&peer != author && peer.rank", "false")]),
    "answer-kept": ("a rank takes the answer before for the next one", [drop(STORE, "answer_.reset();")]),
    "one-write": ("the store forgets what a connection did not take at once", [
        instead(STORE_SERVER, "peer.out.begin() + count", "peer.out.end()")]),
    "replay-admitted": ("who repeats what a rank has said is taken for it", [
        instead(STORE_SERVER, "!equalDigests(peer.admission->rankProof(key_), proof.value)", "false")]),
}
