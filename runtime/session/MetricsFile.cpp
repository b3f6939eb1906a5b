//===- MetricsFile.cpp - --metrics ----------------------------------------===//
#include "runtime/session/MetricsFile.h"

#include "core/DType.h"
#include "core/Error.h"
#include "core/Status.h"
#include "runtime/comm/Communicator.h"
#include "runtime/executor/Scalar.h"
#include "runtime/session/StepReport.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>

namespace ds::runtime {

MetricsFile::MetricsFile(const std::string &path) : path_(path) {
  if (path.empty())
    return;
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0)
    throw Error("the metrics file " + path + " cannot be written: " + std::strerror(errno));
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
  if (value)
    append(*value);
  else
    append("null");
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
  while (file_ >= 0 && !bytes.empty()) {
    const auto written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return Status::failure("the metrics file %s cannot be written: %s", path_.c_str(), std::strerror(errno));
    bytes.remove_prefix(size_t(written));
  }
  return Status::success();
}

Status MetricsFile::write(const StepReport &report) noexcept {
  append("{\"step\": ", report.step);
  append(", \"loss\": ");
  append(report.loss);
  append(", \"grad_norm\": ");
  append(report.gradientNorm);
  append(", \"lr\": ");
  append(report.learningRate);
  append(", \"loss_scale\": 1, \"skipped\": false, \"step_seconds\": ");
  append(Scalar{.dtype = DType::F64, .number = report.seconds});
  append(", \"samples_per_second\": ");
  append(Scalar{.dtype = DType::F64, .number = report.samplesPerSecond});
  append("}");
  return writeLine();
}

Status MetricsFile::write(const EvaluationReport &report) noexcept {
  append("{\"step\": ", report.step);
  append(", \"eval_loss\": ");
  append(report.loss);
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
    text += "}";
  }
  return writeBytes(text + "]}}\n");
}

} // namespace ds::runtime
