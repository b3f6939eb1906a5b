//===- TcpRank.cpp - a rank whose processes talk by TCP, without a GPU ----===//
//
// TcpRank STEPS MILLISECONDS TIMEOUT_MS METRICS EXPORT, with torchrun's variables: says to the other ranks what
// runtime/session/Training.cpp says, in its order, and sleeps where that computes. Rank 0 writes the same lines and an
// export of 64 bytes of each rank. For test/e2e, which disturbs it.
//
//===----------------------------------------------------------------------===//
#include "core/AtomicFile.h"
#include "core/Error.h"
#include "core/Status.h"
#include "runtime/comm/tcp/TcpControlPlane.h"
#include "runtime/comm/tcp/Torchrun.h"
#include "tools/ds-run/Ending.h"
#include "tools/ds-run/SideChannels.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ds;

class Run {
public:
  Run(const runtime::Torchrun &torchrun, const std::vector<std::string> &arguments)
      : rank_(torchrun.rank), steps_(std::stoull(arguments[0])), work_(std::stoll(arguments[1])),
        metrics_(arguments[3]), export_(arguments[4]),
        plane_(torchrun.address, rank_, torchrun.ranks, std::chrono::milliseconds(std::stoll(arguments[2])),
               torchrun.key) {
    plane_.onStop([this](const Status &status) {
      const std::lock_guard<std::mutex> lock(mutex_);
      failure_ = status;
    });
  }
  ~Run() { plane_.onStop({}); }
  Run(const Run &) = delete;
  Run &operator=(const Run &) = delete;

  void load() {
    for (uint64_t digest = 0; digest < 20; ++digest) {
      std::this_thread::sleep_for(work_);
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
  void trainAll(const std::atomic<bool> &stop) {
    for (uint64_t step = 1; step <= steps_; ++step)
      work("{\"step\": " + std::to_string(step) + ", \"loss\": 1.0}", stop, "after step " + std::to_string(step));
    for (int batch = 0; batch < 20; ++batch)
      work("", stop, "during the evaluation after step " + std::to_string(steps_));
    line("{\"eval_loss\": 1.0}");
    line("{\"summary\": {}}");
    writeExport(stop);
  }

  void work(const std::string &text, const std::atomic<bool> &stop, const std::string &where) {
    std::this_thread::sleep_for(work_);
    line(text);
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
  const std::string metrics_, export_;
  std::mutex mutex_; // of failure_
  Status failure_ = Status::success();
  runtime::TcpControlPlane plane_; // last: it calls back
};

} // namespace

int main(int count, char **words) {
  try {
    const std::vector<std::string> arguments(words + 1, words + count);
    const auto torchrun = runtime::readTorchrun([](const char *name) -> const char * { return std::getenv(name); });
    if (arguments.size() != 5 || !torchrun)
      throw Error("TcpRank needs STEPS MILLISECONDS TIMEOUT_MS METRICS EXPORT and torchrun's variables");
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
