//===- FlightRecorder.cpp - --flight-recorder -----------------------------===//
#include "runtime/flight/FlightRecorder.h"

#include "core/AtomicFile.h"
#include "core/Shortening.h"
#include "runtime/device/CommandRing.h"
#include "runtime/flight/FlightFile.h"
#include "runtime/flight/FlightRank.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace ds::runtime {
namespace {

constexpr int64_t heartbeatMs = 250, stillFromMs = 750;

std::string hostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

} // namespace

int64_t wallMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

FlightRecorder::FlightRecorder(std::function<void(const std::string &)> say)
    : say_(std::move(say)), beatMs_(coarseMs()) {
  ::sem_init(&wake_, 0, 0);
  writer_ = std::thread([this] { serve(); });
  ::pthread_setname_np(writer_.native_handle(), "ds-flight");
}

FlightRecorder::~FlightRecorder() {
  stop();
  ::sem_destroy(&wake_);
}

void FlightRecorder::stop() noexcept {
  if (!writer_.joinable())
    return;
  ends_ = true;
  ::sem_post(&wake_);
  writer_.join();
}

void FlightRecorder::begin(Run run) {
  const std::lock_guard<std::mutex> lock(mutex_);
  run_ = std::move(run);
  begun_ = true;
}

FlightRank &FlightRecorder::addRank(const plan::proto::Plan &plan, uint32_t rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ranks_.emplace_back(plan, rank);
}

void FlightRecorder::hostNow(HostState state, std::string_view work, uint64_t step) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  Stage &stage = stages_[stagesBegun_++ % keptStages];
  stage = {.state = state, .step = step, .number = stagesBegun_, .sinceMs = coarseMs()};
  copyShortened(work, stage.work);
}

void FlightRecorder::failed(const std::string &error, const std::vector<uint32_t> &missed) noexcept {
  if (rests_ || failed_.exchange(true))
    return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    error_ = error;
    missed_ = missed;
  }
  ::sem_post(&wake_);
}

void FlightRecorder::ask() noexcept {
  asked_ = true;
  ::sem_post(&wake_);
}

std::string FlightRecorder::finish() noexcept {
  stop();
  return outcome_;
}

std::vector<HostStage> FlightRecorder::stages(int64_t shiftMs) const {
  std::vector<HostStage> stages;
  for (uint64_t i = stagesBegun_ - std::min<uint64_t>(stagesBegun_, keptStages); i < stagesBegun_; ++i) {
    const Stage &stage = stages_[i % keptStages];
    stages.push_back({.state = stage.state,
                      .number = stage.number,
                      .sinceMs = stage.sinceMs + shiftMs,
                      .work = stage.work.data() + (stage.step > 0 ? " " + std::to_string(stage.step) : "")});
  }
  if (stages.empty())
    stages.emplace_back();
  return stages;
}

/// A process that was stopped, or whose host was, writes its record when it goes on, and looks as if it had not.
void FlightRecorder::await() noexcept {
  timespec end{};
  ::clock_gettime(CLOCK_REALTIME, &end);
  end.tv_nsec += heartbeatMs * 1000000;
  end.tv_sec += end.tv_nsec / 1000000000;
  end.tv_nsec %= 1000000000;
  (void)::sem_timedwait(&wake_, &end);
  const int64_t now = coarseMs(), ms = now - std::exchange(beatMs_, now);
  if (ms < heartbeatMs + stillFromMs)
    return;
  if (stills_.size() == keptStills)
    stills_.erase(stills_.begin());
  stills_.push_back({.ms = ms, .untilMs = now});
}

void FlightRecorder::serve() noexcept {
  bool written = false;
  while (true) {
    await();
    if (asked_.exchange(false))
      say_(write("signal", ""));
    if (failed_ && !std::exchange(written, true)) {
      std::string error;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        error = error_;
      }
      outcome_ = write("failure", error);
    }
    beatMs_ = coarseMs(); // a folder that is slow to take a record is no stillness
    if (ends_)
      return;
  }
}

std::string FlightRecorder::write(const std::string &reason, const std::string &error) noexcept {
  try {
    Run run;
    std::vector<FlightFile> files;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!begun_)
        return "there is no flight record yet: this process has not met the others";
      run = run_;
      const int64_t now = wallMs() + run.clockMs, shift = now - coarseMs();
      for (const FlightRank &rank : ranks_) {
        FlightFile &file = files.emplace_back(rank.look(shift));
        file.writtenMs = now; // a slow folder takes it later
        file.stages = stages(shift);
        file.missed = missed_;
        for (const Stillness &still : stills_)
          file.stills.push_back({.ms = still.ms, .untilMs = still.untilMs + shift});
      }
    }
    std::error_code known; // by the first file that cannot be written
    std::filesystem::create_directories(run.folder, known);
    for (FlightFile &file : files) {
      file.ranks = run.ranks;
      file.plan = run.plan;
      file.run = run.id;
      file.host = hostName();
      file.process = ::getpid();
      file.reason = reason;
      file.error = error;
      file.data = run.data;
      writeFileAtomically(run.folder + "/" + flightFileName(file.rank), file.text());
    }
    return "what " + (files.size() == 1 ? "rank " + std::to_string(files[0].rank) : "each rank") + " did last is in " +
           run.folder;
  } catch (const std::exception &error) { // the training, or its error, is worth more
    return std::string("the flight record is lost: ") + error.what();
  }
}

std::string flightFolder(const std::string &planPath) { return planPath + ".flight"; }

} // namespace ds::runtime
