//===- Processes.cpp - simulated processes and their control plane --------===//
#include "test/simulation/Processes.h"

#include "core/Error.h"
#include "runtime/comm/tcp/TcpControlPlane.h"
#include "test/simulation/Network.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <map>
#include <netinet/in.h>
#include <span>

namespace ds::sim {
namespace {

using namespace std::chrono_literals;
using runtime::TcpControlPlane;

const runtime::StoreAddress address{"127.0.0.1", 4000};
const runtime::RunKey key{"a run", "its secret"};

constexpr uint32_t processOf(uint32_t rank) { return rank + 1; } // 0 is the scheduler's first
constexpr uint32_t strangerProcess = 1000;

std::byte byteOf(const Exchange &exchange, size_t i) {
  return std::byte((i * 7 + exchange.bytes + exchange.from) % 251);
}

class Processes {
public:
  Processes(const ProcessScenario &scenario, ProcessRun &run) : scenario_(scenario), run_(run) {
    run_.ranks.resize(scenario_.ranks);
    network_.onCall = [this](uint32_t process) { called(process); };
  }

  void runAll() {
    Scheduler &scheduler = *Scheduler::current();
    for (uint32_t rank = 0; rank < scenario_.ranks; ++rank)
      scheduler.startIn(processOf(rank), [this, rank] {
        Scheduler::current()->sleep(scenario_.starts[rank]);
        runRank(rank);
        end(rank);
      });
    while (!std::ranges::all_of(run_.ranks, &ProcessRun::Rank::over))
      scheduler.block(this, "the end of the processes");
  }

private:
  void end(uint32_t rank) {
    run_.ranks[rank].over = true;
    Scheduler::current()->wakeAll(this);
  }

  void runRank(uint32_t rank) {
    ProcessRun::Rank &mine = run_.ranks[rank];
    try {
      TcpControlPlane plane(address, rank, scenario_.ranks, processTimeout, key);
      mine.joined = true;
      Scheduler::current()->log("rank %u has met the others", rank);
      try {
        for (size_t i = 0; i < scenario_.script.size(); ++i)
          exchange(plane, rank, i);
        mine.finishes = true;
        plane.finish();
      } catch (const Error &error) { // as Training does
        plane.stop(Status::failure("%s", error.what()));
        throw;
      }
    } catch (const Error &error) {
      mine.error = error.what();
    }
    Scheduler::current()->log("rank %u ends: %s", rank, mine.error.empty() ? "well" : mine.error.c_str());
  }

  void exchange(TcpControlPlane &plane, uint32_t rank, size_t index) {
    const Exchange &exchange = scenario_.script[index];
    if (scenario_.trouble == Trouble::Fails && scenario_.rank == rank && scenario_.at == index) {
      hit();
      throw Error(plannedFailure);
    }
    std::string &wrong = run_.ranks[rank].wrong;
    const std::string name = "exchange " + std::to_string(index) + " of rank " + std::to_string(rank);
    switch (exchange.kind) {
    case Exchange::Kind::AnyOf: {
      const bool any = plane.anyOf((exchange.flags >> rank & 1) != 0);
      if (const Status failure = plane.failure(); !failure.ok())
        throw Error(failure.message());
      if (any != (exchange.flags != 0))
        wrong = name + " says that any is " + (any ? "true" : "false");
      return;
    }
    case Exchange::Kind::RequireEqual:
      return plane.requireEqual("the plan file", 77 + index);
    case Exchange::Kind::Copy:
      std::vector<std::byte> bytes(exchange.bytes);
      for (size_t i = 0; i < bytes.size() && rank == exchange.from; ++i)
        bytes[i] = byteOf(exchange, i);
      plane.copy(exchange.from, exchange.to, bytes);
      for (size_t i = 0; i < bytes.size() && rank == exchange.to; ++i)
        if (bytes[i] != byteOf(exchange, i))
          wrong = name + " brought other bytes than were sent";
    }
  }

  /// The rank's trouble begins.
  void hit() {
    run_.hit = true;
    run_.hitAt = Scheduler::current()->now();
    run_.hadJoined = run_.ranks[scenario_.rank].joined;
    run_.hadFinished = run_.ranks[scenario_.rank].finishes;
    Scheduler::current()->log("%s: rank %u", name(scenario_.trouble), scenario_.rank);
  }

  void called(uint32_t process) {
    const uint64_t call = calls_[process]++;
    for (const ProcessScenario::Delay &delay : scenario_.delays)
      if (processOf(delay.rank) == process && delay.at == call)
        network_.delay(process, delay.duration);
    if (process != processOf(scenario_.rank) || call != scenario_.at || scenario_.trouble == Trouble::None ||
        scenario_.trouble == Trouble::Fails)
      return;
    begin(process);
  }

  void begin(uint32_t process) {
    Scheduler &scheduler = *Scheduler::current();
    if (scenario_.trouble == Trouble::Resets ? !network_.resetAll(process)
                                             : scenario_.trouble == Trouble::Silence && !network_.cut(process))
      return; // it has no connection to lose
    hit();
    switch (scenario_.trouble) {
    case Trouble::Dies:
    case Trouble::Dies2:
      network_.closeAll(process, scenario_.trouble == Trouble::Dies2);
      [[fallthrough]];
    case Trouble::Stands:
      end(scenario_.rank); // nobody waits for it
      return scheduler.freeze(process);
    case Trouble::Pauses:
      scheduler.startIn(0, [this, process] {
        Scheduler::current()->sleep(scenario_.duration);
        Scheduler::current()->thaw(process);
      });
      return scheduler.freeze(process);
    case Trouble::Replay:
      scheduler.startIn(strangerProcess, [this, process] {
        Scheduler::current()->sleep(scenario_.duration);
        repeat(std::vector(network_.sentFirst(process)));
      });
      return;
    default:
      return;
    }
  }

  /// A process that says what another has said, and hears the answers.
  void repeat(const std::vector<std::byte> &said) {
    const int descriptor = sim::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(address.port);
    (void)sim::connect(descriptor, reinterpret_cast<const sockaddr *>(&to), sizeof to);
    size_t sent = 0;
    std::array<std::byte, 256> heard;
    for (int turns = 0; turns < 1000; ++turns) {
      pollfd wait{descriptor, short(POLLIN | (sent < said.size() ? POLLOUT : 0)), 0};
      (void)sim::poll(&wait, 1, 1000);
      if ((wait.revents & POLLOUT) != 0) {
        const ssize_t count = sim::send(descriptor, said.data() + sent, said.size() - sent, 0);
        if (count < 0)
          break;
        sent += size_t(count);
      }
      if ((wait.revents & POLLIN) != 0 && sim::recv(descriptor, heard.data(), heard.size(), 0) <= 0)
        break;
    }
    (void)sim::close(descriptor);
  }

  const ProcessScenario &scenario_;
  ProcessRun &run_;
  Network network_;
  std::map<uint32_t, uint64_t> calls_; // by process
};

} // namespace

const char *name(Trouble trouble) {
  constexpr std::array<const char *, 9> names = {"no trouble",        "fails",        "dies",
                                                 "dies with a reset", "stands still", "pauses",
                                                 "connection reset",  "silent link",  "is repeated by another"};
  return names[size_t(trouble)];
}

void runProcesses(const ProcessScenario &scenario, ProcessRun &run) { Processes(scenario, run).runAll(); }

} // namespace ds::sim
