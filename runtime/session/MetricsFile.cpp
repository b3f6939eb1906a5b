//===- MetricsFile.cpp - --metrics ----------------------------------------===//
#include "runtime/session/MetricsFile.h"

#include "core/DType.h"
#include "core/Error.h"
#include "core/Files.h"
#include "core/Status.h"
#include "runtime/comm/Communicator.h"
#include "runtime/executor/Scalar.h"
#include "runtime/session/StepReport.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <utility>

namespace ds::runtime {

MetricsFile::MetricsFile(const std::string &path, bool resumes) : path_(path) {
  if (path.empty())
    return;
  open();
  struct stat status;
  if (::fstat(file_, &status) != 0)
    refuse(errno);
  const bool isOwnStream = path.starts_with("/dev/"); // stdout is a link there, and the file behind it not ours alone
  if (!S_ISREG(status.st_mode) || status.st_size == 0 || isOwnStream)
    return;
  if (resumes)
    endHalfLine(uint64_t(status.st_size));
  else
    moveAside();
}

/// The machine may have gone down while the last line was written.
void MetricsFile::endHalfLine(uint64_t bytes) {
  char last = '\n';
  const int reader = openFile(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (reader < 0 || ::pread(reader, &last, 1, off_t(bytes - 1)) < 0)
    last = '\n'; // it may be for writing alone
  if (reader >= 0)
    ::close(reader);
  if (last != '\n')
    (void)writeBytes("\n");
}

/// Opens and locks what has the path; tries again where another run has just moved that aside.
void MetricsFile::open() {
  for (;;) {
    file_ = openFile(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    struct stat opened, named;
    if (file_ < 0 || ::fstat(file_, &opened) != 0)
      refuse(errno);
    if (!S_ISREG(opened.st_mode))
      return; // a pipe or a terminal, which several may write
    int locked = 0;
    do
      locked = ::flock(file_, LOCK_EX | LOCK_NB);
    while (locked != 0 && errno == EINTR);
    if (locked != 0 && errno == EWOULDBLOCK) {
      ::close(std::exchange(file_, -1));
      throw Error("the metrics file " + path_ + " is being written by another run; give each run a file of its own");
    }
    const bool isNamed = ::stat(path_.c_str(), &named) == 0;
    if (!isNamed && errno != ENOENT)
      refuse(errno);
    if (isNamed && named.st_dev == opened.st_dev && named.st_ino == opened.st_ino)
      return;
    ::close(std::exchange(file_, -1));
  }
}

/// Before the first step, by a system call's error.
void MetricsFile::refuse(int problem) {
  if (file_ >= 0)
    ::close(std::exchange(file_, -1));
  throw Error("the metrics file " + path_ + " cannot be written: " + std::strerror(problem));
}

void MetricsFile::moveAside() {
  const int older = file_; // stays locked until the new one is, so that no other run moves it too
  struct stat taken;
  int number = 0;
  do
    movedTo_ = path_ + "." + std::to_string(++number);
  while (::lstat(movedTo_.c_str(), &taken) == 0);
  if (errno != ENOENT) // it may be there, and must not be overwritten
    refuse(errno);
  if (std::rename(path_.c_str(), movedTo_.c_str()) != 0) {
    const int problem = errno;
    ::close(std::exchange(file_, -1));
    throw Error("the metrics file " + path_ + " holds an older run's lines, which cannot be moved to " + movedTo_ +
                ": " + std::strerror(problem) + "; give another --metrics");
  }
  open();
  ::close(older);
}

MetricsFile::~MetricsFile() {
  if (file_ >= 0)
    ::close(file_);
}

void MetricsFile::append(std::string_view text) noexcept {
  const size_t count = std::min(text.size(), line_.size() - used_);
  std::memcpy(&line_[used_], text.data(), count);
  used_ += count;
}

void MetricsFile::append(const Scalar &value) noexcept {
  std::array<char, 32> text;
  append(std::string_view(text.data(), size_t(value.format(text) - text.data())));
}

void MetricsFile::append(const std::optional<Scalar> &value) noexcept {
  if (value && value->isFinite())
    append(*value);
  else
    append("null");
}

/// `, "nonfinite": {"loss": "NaN"}` where a value stands as null for that reason.
void MetricsFile::appendNonFinite(const StepReport &report) noexcept {
  bool any = false;
  const auto add = [&](std::string_view key, const std::optional<Scalar> &value) {
    if (!value || value->isFinite())
      return;
    append(std::exchange(any, true) ? ", " : ", \"nonfinite\": {");
    append(key);
    append(*value);
    append("\"");
  };
  add("\"loss\": \"", report.loss);
  add("\"grad_norm\": \"", report.gradientNorm);
  add("\"lr\": \"", report.learningRate);
  append(any ? "}" : "");
}

void MetricsFile::append(std::string_view key, uint64_t value) noexcept {
  std::array<char, 24> text;
  append(key);
  append(std::string_view(text.data(), size_t(std::to_chars(text.begin(), text.end(), value).ptr - text.data())));
}

Status MetricsFile::writeLine() noexcept {
  append("\n");
  const size_t bytes = used_;
  used_ = 0;
  return writeBytes({line_.data(), bytes});
}

Status MetricsFile::writeBytes(std::string_view bytes) noexcept {
  off_t written = 0;
  while (file_ >= 0 && !bytes.empty()) {
    const auto now = ::write(file_, bytes.data(), bytes.size());
    if (now < 0 && errno == EINTR)
      continue;
    if (now < 0) {
      const Status status =
          Status::failure("the metrics file %s cannot be written: %s; the run goes on, and lines are lost until it can",
                          path_.c_str(), std::strerror(errno));
      if (struct stat file; written > 0 && ::fstat(file_, &file) == 0 && S_ISREG(file.st_mode))
        (void)!::ftruncate(file_, file.st_size - written); // no half line
      return status;
    }
    written += now;
    bytes.remove_prefix(size_t(now));
  }
  return Status::success();
}

void MetricsFile::identify(const std::string &plan, const std::string &run) {
  identity_ = R"(, "plan": ")" + plan + R"(", "run": ")" + run + '"';
}

Status MetricsFile::write(const StepReport &report) noexcept {
  append("{\"step\": ", report.step);
  append(", \"loss\": ");
  append(report.loss);
  append(", \"grad_norm\": ");
  append(report.gradientNorm);
  append(", \"lr\": ");
  append(report.learningRate);
  if (report.targets) {
    append(", \"targets\": ");
    append(report.targets);
  }
  if (report.length > 0)
    append(", \"length\": ", report.length);
  append(", \"loss_scale\": ");
  append(report.lossScale ? report.lossScale : Scalar{.dtype = DType::F64, .number = 1});
  append(", \"skipped\": ");
  append(report.skipped ? "true" : "false");
  append(report.redone ? ", \"redone\": true" : "");
  append(", \"step_seconds\": ");
  append(Scalar{.dtype = DType::F64, .number = report.seconds});
  append(", \"samples_per_second\": ");
  append(Scalar{.dtype = DType::F64, .number = report.samplesPerSecond});
  if (report.tokensPerSecond > 0) {
    append(", \"tokens_per_second\": ");
    append(Scalar{.dtype = DType::F64, .number = report.tokensPerSecond});
  }
  const auto add = [&](const char *key, double value) {
    append(key);
    append(Scalar{.dtype = DType::F64, .number = value});
  };
  if (report.modelFlopsPerSecond > 0)
    add(", \"model_flops_per_second\": ", report.modelFlopsPerSecond);
  if (report.modelFlopsUtilization > 0)
    add(", \"model_flops_utilization\": ", report.modelFlopsUtilization);
  appendNonFinite(report);
  append(identity_);
  identity_.clear();
  append("}");
  return writeLine();
}

Status MetricsFile::write(const EvaluationReport &report) noexcept {
  append("{\"step\": ", report.step);
  append(", \"eval_loss\": ");
  append(report.loss);
  if (report.loss && !report.loss->isFinite()) {
    append(", \"nonfinite\": {\"eval_loss\": \"");
    append(*report.loss);
    append("\"}");
  }
  append("}");
  return writeLine();
}

Status MetricsFile::write(std::span<const SummaryReport> ranks) {
  std::string text;
  const auto add = [&](const char *key, uint64_t value) { text += key + std::to_string(value); };
  for (const SummaryReport &report : ranks) {
    const auto wire = [&](CollectiveKind kind) { return report.trafficPerStep.collectives[size_t(kind)]; };
    add(text.empty() ? "{\"summary\": {\"ranks\": [{\"rank\": " : ", {\"rank\": ", report.rank);
    add(", \"device_bytes\": ", report.deviceBytes);
    add(", \"device_touched_bytes\": ", report.deviceTouchedBytes);
    add(", \"host_bytes\": ", report.hostBytes);
    add(", \"nvme_bytes\": ", report.nvmeBytes);
    if (report.stepsRedone > 0)
      add(", \"steps_redone\": ", report.stepsRedone);
    add(", \"wire_bytes_per_step\": {\"all_gather\": ", wire(CollectiveKind::AllGather));
    add(", \"reduce_scatter\": ", wire(CollectiveKind::ReduceScatter));
    add(", \"all_reduce\": ", wire(CollectiveKind::AllReduce));
    if (wire(CollectiveKind::Broadcast) > 0)
      add(", \"broadcast\": ", wire(CollectiveKind::Broadcast));
    if (wire(CollectiveKind::AllToAll) > 0)
      add(", \"all_to_all\": ", wire(CollectiveKind::AllToAll));
    add(", \"send\": ", report.trafficPerStep.sent);
    add(", \"recv\": ", report.trafficPerStep.received);
    add("}, \"rss_anon_bytes\": ", report.anonymousResidentBytes);
    if (report.fallbacks.isCounted) {
      add(", \"fallbacks\": ", report.fallbacks.count);
      text += std::string(", \"fallback_kernels\": \"") + report.fallbacks.kernels.data() + "\"";
    }
    text += "}";
  }
  return writeBytes(text + "]}}\n");
}

} // namespace ds::runtime
