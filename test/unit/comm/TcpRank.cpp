//===- TcpRank.cpp - a rank whose processes talk by TCP, without a GPU ----===//
//
// TcpRank STEPS MILLISECONDS TIMEOUT_MS METRICS EXPORT [PLAN RECORDS], with torchrun's variables: says to the other
// ranks what runtime/session/Training.cpp says, in its order, and sleeps where that computes. Rank 0 writes the same
// lines and an export of 64 bytes of each rank. With PLAN it reads that at every step, as a run reads its data, and
// keeps a flight record of a rank of it. For test/e2e, which disturbs it.
//
//===----------------------------------------------------------------------===//
#include "core/AtomicFile.h"
#include "core/Crc32c.h"
#include "core/Error.h"
#include "core/Status.h"
#include "runtime/comm/tcp/TcpControlPlane.h"
#include "runtime/comm/tcp/Torchrun.h"
#include "runtime/flight/FlightFile.h"
#include "runtime/flight/FlightRecorder.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/format/PlanReader.h"
#include "runtime/plan/plan.pb.h"
#include "tools/ds-run/Ending.h"
#include "tools/ds-run/SideChannels.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace ds;

class Run {
public:
  Run(const runtime::Torchrun &torchrun, const std::vector<std::string> &arguments)
      : rank_(torchrun.rank), steps_(std::stoull(arguments[0])), work_(std::stoll(arguments[1])),
        metrics_(arguments[3]), export_(arguments[4]), planPath_(arguments.size() > 5 ? arguments[5] : ""),
        plane_(torchrun.address, rank_, torchrun.ranks, std::chrono::milliseconds(std::stoll(arguments[2])),
               torchrun.key) {
    if (arguments.size() > 6)
      beginFlight(arguments[6]);
    plane_.onStop([this](const Status &status) {
      const std::lock_guard<std::mutex> lock(mutex_);
      failure_ = status;
      if (flight_)
        flight_->failed(status.message(), plane_.missing());
    });
  }
  ~Run() { plane_.onStop({}); }
  Run(const Run &) = delete;
  Run &operator=(const Run &) = delete;

  void load() {
    for (uint64_t digest = 0; digest < 20; ++digest) {
      computeAndRead("opens --data " + planPath_);
      now(runtime::HostState::Awaits, "compares its data and weights with the other processes");
      plane_.requireEqual("a weight", digest);
    }
  }

  void train(const std::atomic<bool> &stop) {
    try {
      trainAll(stop);
    } catch (const Error &error) {
      plane_.stop(Status::failure("%s", error.what()));
      throw;
    }
    plane_.finish();
  }

private:
  void beginFlight(const std::string &records) {
    plan_ = plan::readPlan(planPath_);
    const std::string bytes = plan::framePlan(plan_);
    flight_.emplace([](const std::string &) {});
    flight_->begin({.folder = records,
                    .id = "tcp", // a folder has the records of one run
                    .ranks = plane_.ranks(),
                    .plan = crc32c(std::as_bytes(std::span(bytes))),
                    .data = {planPath_}});
    (void)flight_->addRank(plan_, rank_);
  }

  void now(runtime::HostState state, const std::string &work, uint64_t step = 0) {
    if (flight_)
      flight_->hostNow(state, work, step);
  }

  void computeAndRead(const std::string &what, uint64_t step = 0) {
    now(runtime::HostState::Works, what, step);
    std::this_thread::sleep_for(work_);
    char byte = 0;
    if (const int file = flight_ ? ::open(planPath_.c_str(), O_RDONLY | O_CLOEXEC) : -1; file >= 0) {
      (void)!::read(file, &byte, 1);
      (void)::close(file);
    }
  }

  void trainAll(const std::atomic<bool> &stop) {
    for (uint64_t step = 1; step <= steps_; ++step)
      work("{\"step\": " + std::to_string(step) + ", \"loss\": 1.0}", stop, "after step " + std::to_string(step), step);
    for (int batch = 0; batch < 20; ++batch)
      work("", stop, "during the evaluation after step " + std::to_string(steps_));
    line("{\"eval_loss\": 1.0}");
    line("{\"summary\": {}}");
    writeExport(stop);
  }

  void work(const std::string &text, const std::atomic<bool> &stop, const std::string &where, uint64_t step = 0) {
    computeAndRead("reads --data " + planPath_ + " for step", step);
    line(text);
    now(runtime::HostState::Awaits, "waits for the other processes after step", step);
    const bool any = plane_.anyOf(stop);
    throwIfFailed();
    if (any)
      throw Error("stopped by a signal " + where);
  }

  void throwIfFailed() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.ok())
      throw Error(failure_.message());
  }

  void line(const std::string &text) const {
    if (rank_ == 0 && !text.empty())
      std::ofstream(metrics_, std::ios::app) << text << std::endl;
  }

  void writeExport(const std::atomic<bool> &stop) {
    std::vector<std::byte> all;
    for (uint32_t from = 0; from < plane_.ranks(); ++from)
      for (int piece = 0; piece < 16; ++piece) {
        std::this_thread::sleep_for(work_ / plane_.ranks());
        if (stop)
          throw Error("stopped by a signal during the export; " + export_ + " was not written");
        std::array<std::byte, 4> bytes;
        bytes.fill(std::byte(from));
        plane_.copy(from, 0, bytes);
        all.insert(all.end(), bytes.begin(), bytes.end());
      }
    throwIfFailed();
    if (rank_ == 0)
      writeFileAtomically(export_, {reinterpret_cast<const char *>(all.data()), all.size()});
  }

  const uint32_t rank_;
  const uint64_t steps_;
  const std::chrono::milliseconds work_;
  const std::string metrics_, export_, planPath_;
  plan::proto::Plan plan_;
  std::optional<runtime::FlightRecorder> flight_;
  std::mutex mutex_; // of failure_
  Status failure_ = Status::success();
  runtime::TcpControlPlane plane_; // last: it calls back
};

} // namespace

int main(int count, char **words) {
  try {
    const std::vector<std::string> arguments(words + 1, words + count);
    const auto torchrun = runtime::readTorchrun([](const char *name) -> const char * { return std::getenv(name); });
    if ((arguments.size() != 5 && arguments.size() != 7) || !torchrun)
      throw Error("TcpRank needs STEPS MILLISECONDS TIMEOUT_MS METRICS EXPORT [PLAN RECORDS] and torchrun's variables");
    run::outliveSideChannels();
    run::endOnSignals();
    Run run(*torchrun, arguments);
    run.load();
    run.train(run::askToEndOnSignals());
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
