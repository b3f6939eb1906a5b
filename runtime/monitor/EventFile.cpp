//===- EventFile.cpp - a file that TensorBoard reads ----------------------===//
#include "runtime/monitor/EventFile.h"

#include "core/Crc32c.h"
#include "core/Error.h"
#include "runtime/monitor/AppendedFile.h"
#include "runtime/monitor/events.pb.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits.h>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>

namespace ds::runtime {
namespace {

namespace fs = std::filesystem;

double secondsSince1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// TensorBoard looks for "tfevents"; the rest tells runs apart.
std::string nameOfFile(const fs::path &folder) {
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem)
    throw Error("tensorboard.output_path: the folder " + folder.string() + " cannot be made: " + problem.message());
  std::array<char, HOST_NAME_MAX + 1> host{};
  ::gethostname(host.data(), host.size() - 1);
  return folder / ("events.out.tfevents." + std::to_string(int64_t(secondsSince1970())) + "." + host.data() + "." +
                   std::to_string(::getpid()));
}

void appendLittleEndian(std::string &record, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    record += char(value >> (8 * i));
}

uint32_t maskedChecksum(std::string_view bytes) {
  const uint32_t crc = crc32c(std::as_bytes(std::span(bytes)));
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

std::string framed(const monitor::Event &event) {
  const std::string data = event.SerializeAsString();
  std::string record;
  appendLittleEndian(record, data.size(), 8);
  appendLittleEndian(record, maskedChecksum(record), 4);
  record += data;
  appendLittleEndian(record, maskedChecksum(data), 4);
  return record;
}

} // namespace

EventFile::EventFile(const fs::path &folder) : path_(nameOfFile(folder)), file_("the TensorBoard file", path_) {
  monitor::Event first;
  first.set_wall_time(secondsSince1970());
  first.set_file_version("brain.Event:2");
  if (const Status status = file_.append(framed(first)); !status.ok())
    throw Error(status.message());
}

Status EventFile::write(const char *tag, uint64_t samples, const Scalar &value) noexcept {
  monitor::Event event;
  event.set_wall_time(secondsSince1970());
  event.set_step(int64_t(samples));
  monitor::Summary::Value &one = *event.mutable_summary()->add_value();
  one.set_tag(tag);
  one.set_simple_value(float(value.asDouble()));
  return file_.append(framed(event));
}

} // namespace ds::runtime
