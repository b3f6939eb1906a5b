//===- PlanFile.cpp - how a plan lies in a file ---------------------------===//
#include "runtime/plan/format/PlanFile.h"

#include "core/AtomicFile.h"
#include "core/Crc32c.h"
#include "core/Error.h"
#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <span>
#include <string>

namespace ds::plan {
namespace {

constexpr char magic[8] = {'D', 'S', 'P', 'L', 'A', 'N', '\r', '\n'};

void putLittleEndian(std::string &out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out.push_back(char(value >> 8 * i & 0xFF));
}

uint64_t getLittleEndian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | uint64_t(bytes[i]);
  return value;
}

std::string serialize(const proto::Plan &plan) {
  std::string message;
  google::protobuf::io::StringOutputStream stream(&message);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  if (!plan.SerializeToCodedStream(&coded))
    throw Error("the plan cannot be serialized: it passes 2 GiB");
  coded.Trim();
  return message;
}

} // namespace

std::string framePlan(const proto::Plan &plan) {
  const std::string message = serialize(plan);
  std::string file(magic, sizeof magic);
  file.reserve(frameHeaderBytes + message.size());
  putLittleEndian(file, message.size(), 8);
  putLittleEndian(file, crc32c(std::as_bytes(std::span(message))), 4);
  putLittleEndian(file, 0, 4);
  return file + message;
}

void writePlanFile(const std::string &path, const proto::Plan &plan) { writeFileAtomically(path, framePlan(plan)); }

proto::Plan unframePlan(std::span<const std::byte> file) {
  if (file.size() < frameHeaderBytes || std::memcmp(file.data(), magic, sizeof magic) != 0)
    throw Error("it does not begin as a plan file does; make one with ds-opt compile");
  const uint64_t length = getLittleEndian(file.subspan(8, 8));
  const std::span<const std::byte> message = file.subspan(frameHeaderBytes);
  if (length > maxMessageBytes)
    throw Error("it claims a message of " + std::to_string(length) +
                " bytes, more than the 2 GiB that a plan may have");
  if (message.size() != length)
    throw Error("it holds " + std::to_string(message.size()) + " bytes after its header, which says " +
                std::to_string(length) + ": truncated or overwritten; compile or copy it again");
  if (getLittleEndian(file.subspan(20, 4)) != 0)
    throw Error("bytes 20 to 23 of its header are not zero; compile or copy it again");
  if (crc32c(message) != getLittleEndian(file.subspan(16, 4)))
    throw Error("its CRC-32C does not match its contents: damaged; compile or copy it again");
  const google::protobuf::LogSilencer silencer; // our own sentence is enough
  proto::Plan plan;
  if (!plan.ParseFromArray(message.data(), int(length)))
    throw Error("its message is no valid protocol buffer of a plan; compile it again");
  if (plan.format_version() == 0)
    throw Error("it has no format version; compile it again");
  if (plan.format_version() != formatVersion)
    throw Error("it has format version " + std::to_string(plan.format_version()) + ", and this build reads " +
                std::to_string(formatVersion) +
                (plan.format_version() > formatVersion
                     ? "; use a newer ds-run or compile it again"
                     : "; compile it again: ds-opt compile MODEL --config ds_config.json -o PLAN"));
  return plan;
}

} // namespace ds::plan
