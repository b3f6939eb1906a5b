//===- PlanReader.cpp - from a file to a plan that can be trusted ---------===//
#include "runtime/plan/format/PlanReader.h"

#include "core/DType.h"
#include "core/Error.h"
#include "core/Files.h"
#include "runtime/plan/format/Lengths.h"
#include "runtime/plan/format/PlanChecks.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/RolePeers.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <string>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace ds::plan {
namespace {

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0)
      ::close(number);
  }
};

std::string readWhole(const std::string &path) {
  const Descriptor file{openFile(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)}; // a named pipe must not hang us
  if (file.number < 0)
    throw Error(std::string("cannot be opened: ") + std::strerror(errno));
  struct stat status;
  if (::fstat(file.number, &status) != 0)
    throw Error(std::string("cannot be read: ") + std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    throw Error("it is not a regular file");
  if (uint64_t(status.st_size) > frameHeaderBytes + maxMessageBytes)
    throw Error("it has " + std::to_string(status.st_size) + " bytes, more than the 2 GiB that a plan may have");
  std::string bytes(size_t(status.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(file.number, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throw Error(std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0)
      break;
    done += size_t(got);
  }
  bytes.resize(done);
  return bytes;
}

} // namespace

proto::Plan readPlan(const std::string &path) {
  try {
    const std::string bytes = readWhole(path);
    proto::Plan plan = unframePlan(std::as_bytes(std::span(bytes)));
    validatePlan(plan);
    return plan;
  } catch (const Error &error) {
    throw Error("plan " + path + ": " + error.what(), error.tryLine);
  }
}

namespace {

void validateOne(const proto::Plan &plan) {
  checkSetup(plan);
  checkVariables(plan);
  checkReference(plan);
  checkBuckets(plan);
  checkChannels(plan);
  checkPipeline(plan);
  for (const proto::Role &role : plan.roles()) {
    checkStorage(plan, role);
    checkHeldBuckets(plan, role);
    checkCommands(plan, role);
    checkPhases(plan, role);
    checkPrograms(plan, role);
  }
  RolePeers peers(plan);
  checkSlices(plan, peers);
  checkSamePrograms(plan);
  checkCollectiveOrder(plan, peers);
  checkMessagesAgree(plan, peers);
  checkProgress(plan, peers);
}

} // namespace

void validatePlan(const proto::Plan &plan) {
  checkCodes(plan);
  checkTuning(plan);
  validateOne(plan);
  checkLengths(plan);
  for (const proto::Length &length : plan.shorter())
    try {
      validateOne(planOfSize(plan, length.size()));
    } catch (const TooLarge &error) {
      throw TooLarge(plan.dimension() + "=" + std::to_string(length.size()) + ": " + error.what());
    } catch (const Error &error) {
      throw Error(plan.dimension() + "=" + std::to_string(length.size()) + ": " + error.what());
    }
}

std::string describe(const char *kind, int64_t index, const std::string &name) {
  std::string text = std::string(kind) + " " + std::to_string(index);
  return name.empty() || name.size() > maxNameBytes ? text : text + " (" + name + ")";
}

std::string placeInRun(const proto::Plan &plan, const proto::Role &role, const proto::Program &program, int call,
                       int command) {
  const proto::Call &at = program.calls(call);
  return "program " + program.name() + ", call " + std::to_string(call) + " (" +
         describe("routine", at.routine(), role.routines(int(at.routine())).name()) + ", micro-batch " +
         std::to_string(at.microbatch()) + "), command " + std::to_string(command) +
         (plan.roles_size() > 1 ? " of role " + role.name() : "");
}

void OwnNames::add(const std::string &name, int index, const std::string &place) {
  checkName(name, place);
  const auto [first, isNew] = first_.try_emplace(name, index);
  if (name.empty() || !isNew)
    refuse(place, "its name is empty or another " + std::string(kind_) + " has it" +
                      (isNew ? "" : note(describe(kind_, first->second, name) + " has it first")));
}

void checkName(const std::string &name, const std::string &place) {
  if (name.size() > maxNameBytes)
    refuseSize(place,
               "its name has " + std::to_string(name.size()) + " bytes, more than " + std::to_string(maxNameBytes));
  for (unsigned char byte : name)
    if (byte < 0x20 || byte == 0x7F)
      refuse(place, "its name holds the control character " + std::to_string(byte));
}

DType checkDType(int number, const std::string &place) {
  if (const auto dtype = dtypeFromNumber(number))
    return *dtype;
  refuse(place, "there is no dtype " + std::to_string(number));
}

uint64_t checkTensorBytes(int dtype, const google::protobuf::RepeatedField<int64_t> &shape, const std::string &place) {
  const uint64_t elementBytes = uint64_t(byteSize(checkDType(dtype, place)));
  if (shape.size() > maxRank)
    refuseSize(place, "it has " + std::to_string(shape.size()) + " dimensions, more than " + std::to_string(maxRank));
  uint64_t bytes = elementBytes;
  constexpr uint64_t limit = uint64_t(1) << 62;
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0)
      refuse(place, "its shape " + shapeText(shape) + " has a negative dimension");
    empty |= dim == 0;
    if (dim != 0 && uint64_t(dim) > limit / bytes)
      refuseSize(place, "its shape " + shapeText(shape) + " has more than 2^62 bytes");
    bytes *= dim == 0 ? 1 : uint64_t(dim);
  }
  return empty ? 0 : bytes;
}

void checkAttribute(const proto::Attribute &attribute, const std::string &place) {
  const std::string here = place + ", attribute " + (attribute.name().size() > 64 ? "?" : attribute.name());
  if (attribute.name().empty())
    refuse(place, "an attribute has no name");
  checkName(attribute.name(), here);
  checkName(attribute.setting(), here);
  if (attribute.value_case() == proto::Attribute::VALUE_NOT_SET)
    refuse(here, "it has no value");
  if (attribute.value_case() == proto::Attribute::kText)
    checkName(attribute.text(), here);
}

void checkIndex(uint64_t index, int64_t count, const char *what, const std::string &place) {
  if (index >= uint64_t(count))
    refuse(place,
           "it names " + std::string(what) + " " + std::to_string(index) + ", but there are " + std::to_string(count));
}

} // namespace ds::plan
