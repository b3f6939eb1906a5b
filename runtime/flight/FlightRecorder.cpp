//===- FlightRecorder.cpp - --flight-recorder -----------------------------===//
#include "runtime/flight/FlightRecorder.h"

#include "core/AtomicFile.h"
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

int64_t wallMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string hostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

} // namespace

FlightRecorder::FlightRecorder(std::function<void(const std::string &)> say) : say_(std::move(say)) {
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

FlightRank &FlightRecorder::addRank(const plan::proto::Role &role, uint32_t rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ranks_.emplace_back(role, rank);
}

void FlightRecorder::hostNow(HostState state, std::string_view work, uint64_t step) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  host_.state = state;
  host_.work.fill(0);
  std::copy_n(work.begin(), std::min(work.size(), host_.work.size() - 1), host_.work.begin());
  host_.step = step;
  ++host_.stage;
  host_.sinceMs = coarseMs();
}

void FlightRecorder::failed(const std::string &error) noexcept {
  if (rests_ || failed_.exchange(true))
    return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    error_ = error;
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

std::string FlightRecorder::hostWork() const {
  return host_.work.data() + (host_.step > 0 ? " " + std::to_string(host_.step) : "");
}

/// A process that was stopped, or whose host was, writes its record when it goes on, and looks as if it had not.
void FlightRecorder::await() noexcept {
  const int64_t begin = coarseMs();
  timespec end{};
  ::clock_gettime(CLOCK_REALTIME, &end);
  end.tv_nsec += heartbeatMs * 1000000;
  end.tv_sec += end.tv_nsec / 1000000000;
  end.tv_nsec %= 1000000000;
  (void)::sem_timedwait(&wake_, &end);
  const int64_t now = coarseMs();
  if (now - begin < heartbeatMs + stillFromMs)
    return;
  stillMs_ = now - begin;
  stillUntilMs_ = now;
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
      const int64_t shift = wallMs() - coarseMs();
      for (const FlightRank &rank : ranks_) {
        FlightFile &file = files.emplace_back(rank.look(shift));
        file.hostState = host_.state;
        file.hostWork = hostWork();
        file.hostStage = host_.stage;
        file.hostSinceMs = host_.sinceMs + shift;
        file.stillMs = stillMs_;
        file.stillUntilMs = stillUntilMs_ > 0 ? stillUntilMs_ + shift : 0;
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
      file.writtenMs = wallMs();
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
