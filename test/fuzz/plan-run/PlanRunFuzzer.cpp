//===- PlanRunFuzzer.cpp - plans of several ranks, executed ---------------===//
//
// The input is a plan's message, changed field by field. What PlanReader admits runs on all of its ranks, threads of
// this process. The checker is not asked, so the run may compute nonsense and may end with a sentence. It may not crash
// or stand still, as the reader says that every run comes to its end; nor touch bytes that belong to no buffer.
//
//===----------------------------------------------------------------------===//
#include "core/DType.h"
#include "core/Error.h"
#include "core/Status.h"
#include "kernels/KernelRegistry.h"
#include "runtime/comm/inprocess/InProcessTransport.h"
#include "runtime/data/Dataset.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/executor/VariableSources.h"
#include "runtime/plan/format/Lengths.h"
#include "runtime/plan/format/PlanReader.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/session/LocalRanks.h"
#include "runtime/session/TrainingData.h"
#include "test/fuzz/plan-run/PlanMutator.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <google/protobuf/stubs/logging.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sanitizer/asan_interface.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

using namespace ds;
using namespace ds::runtime;
namespace proto = ds::plan::proto;

constexpr uint64_t mostRanks = 8, mostBytes = uint64_t(1) << 18, mostCommands = 2000, samples = 6;
constexpr int refused = -1; // nothing is made of such an input: what the reader refuses is PlanReaderFuzzer's
constexpr std::chrono::seconds patience(20); // libFuzzer's own is 25 s, and then nobody says who waited for whom

/// Enough to meet every command; more only costs time.
bool isSmall(const proto::Plan &plan) {
  uint64_t bytes = 0, commands = 0, queues = 0;
  for (const proto::Role &role : plan.roles()) {
    queues += uint64_t(role.queues_size());
    for (const proto::Arena &arena : role.arenas())
      bytes += arena.bytes();
    for (const proto::Program &program : role.programs())
      for (const proto::Call &call : program.calls())
        commands += uint64_t(role.routines(int(call.routine())).commands_size()) + 1;
  }
  for (const proto::Input &input : plan.inputs()) {
    uint64_t elements = samples;
    for (int i = 1; i < input.shape_size(); ++i) // dimensions may be 2^62, and 0 behind that
      elements = std::min(elements * std::min(uint64_t(input.shape(i)), 2 * mostBytes), 2 * mostBytes);
    bytes += elements;
  }
  return plan::worldSize(plan) <= mostRanks && bytes <= mostBytes && commands <= mostCommands && queues <= 32 &&
         plan.training().micro_batch_size() <= 64 && plan.weight_files_size() == 0;
}

/// A file with zeros and ones for every input.
std::string writeData(const proto::Plan &plan) {
  static const std::string path =
      std::filesystem::temp_directory_path() / ("ds-plan-run-" + std::to_string(::getpid()));
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  uint64_t bytes = 0;
  for (const proto::Input &input : plan.inputs()) {
    std::vector<uint64_t> shape(input.shape().begin(), input.shape().end());
    shape[0] = samples;
    uint64_t elements = 1;
    for (uint64_t dim : shape)
      elements *= dim;
    header[input.name()] = {{"dtype", DType(input.dtype()) == DType::Bool ? "BOOL" : "U8"},
                            {"shape", shape},
                            {"data_offsets", {bytes, bytes + elements}}};
    bytes += elements;
  }
  std::string text = header.dump();
  const uint64_t length = text.size();
  std::string data(bytes, '\0');
  for (size_t i = 0; i < data.size(); i += 2)
    data[i] = 1;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char *>(&length), sizeof length);
  file << text << data;
  return path;
}

/// While it lives, bytes of the ranks' arenas that belong to no buffer are out of bounds, those behind an arena's end
/// in its last page included.
class Redzones {
public:
  explicit Redzones(const LocalRanks &ranks, uint64_t count) {
    for (uint32_t rank = 0; rank < count; ++rank) {
      const Executor &executor = *ranks.find(rank);
      for (const std::unique_ptr<Arena> &arena : executor.storage().arenas())
        poison(*arena);
      for (const proto::Buffer &buffer : executor.role().buffers()) {
        const std::byte *base = executor.storage().arenas()[buffer.arena()]->base();
        ASAN_UNPOISON_MEMORY_REGION(base + buffer.offset(), buffer.bytes());
        for (uint64_t offset : buffer.slot_offsets())
          ASAN_UNPOISON_MEMORY_REGION(base + offset, buffer.bytes());
      }
    }
  }
  ~Redzones() {
    for (const auto &[begin, bytes] : poisoned_)
      ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
  }
  Redzones(const Redzones &) = delete;
  Redzones &operator=(const Redzones &) = delete;

private:
  void poison(const Arena &arena) {
    const auto page = uint64_t(::sysconf(_SC_PAGESIZE));
    poisoned_.emplace_back(arena.base(), (arena.bytes() + page - 1) / page * page);
    ASAN_POISON_MEMORY_REGION(poisoned_.back().first, poisoned_.back().second);
  }

  std::vector<std::pair<const std::byte *, uint64_t>> poisoned_;
};

/// As an export does.
void readAll(const proto::Plan &plan, const LocalRanks &ranks, uint64_t count) {
  for (uint32_t rank = 0; rank < count; ++rank)
    for (const HeldPart &part : heldParts(plan, rank)) {
      std::vector<std::byte> bytes(part.count * uint64_t(byteSize(DType(plan.variables(int(part.variable)).dtype()))));
      ranks.find(rank)->read(part, 0, bytes);
    }
}

void run(const proto::Plan &one) {
  const proto::Plan plan = plan::withProgramsOfAllSizes(one);
  const uint64_t count = plan::worldSize(plan);
  const Dataset data(inputSpecs(plan), {writeData(one)}, {},
                     {.dimension = plan.dimension(), .each = plan::sizesOf(plan)});
  const VariableSources sources(plan, {.planFolder = "", .weightsPath = "", .seed = 3});
  InProcessTransport transport{uint32_t(count)};
  transport.setTimeout(patience);
  LocalRanks ranks(plan, transport, [](uint32_t) { return std::make_unique<CpuDevice>(); },
                   kernels::cpuReferenceKernels(), {.threads = 1, .patience = patience});
  const Redzones redzones(ranks, count);
  ranks.initialize(sources);
  std::vector<std::string> programs{"step"};
  for (const proto::Program &program : ranks.first().role().programs())
    programs.push_back(program.name());
  for (const std::string &program : programs) {
    if (!ranks.first().program(program))
      continue;
    const Status status = ranks.execute(program, {.seed = 3, .data = &data});
    if (std::strstr(status.message(), "nothing has moved for") != nullptr ||
        std::strstr(status.message(), "stands still or is slower than") != nullptr) {
      std::fprintf(stderr, "the reader admitted a plan that does not come to its end: %s\n", status.message());
      std::abort();
    }
    for (const proto::Metric &metric : ranks.first().role().programs(int(*ranks.first().program(program))).metrics())
      (void)ranks.first().metric(*ranks.first().program(program), metric.name());
  }
  readAll(plan, ranks, count);
}

} // namespace

// NOLINTBEGIN(readability-identifier-naming): libFuzzer looks for these names
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const google::protobuf::LogSilencer silencer;
  proto::Plan plan;
  if (!plan.ParseFromArray(data, int(size)))
    return refused;
  try {
    plan::validatePlan(plan);
  } catch (const Error &) {
    return refused;
  }
  if (!isSmall(plan::withProgramsOfAllSizes(plan)))
    return refused;
  try {
    run(plan);
  } catch (const Error &error) {
    if (std::strlen(error.what()) == 0)
      std::abort();
  }
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t mostBytes);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  const google::protobuf::LogSilencer silencer;
  std::minstd_rand random(seed);
  proto::Plan plan;
  if (!plan.ParseFromArray(data, int(size)))
    return LLVMFuzzerMutate(data, size, most);
  for (uint64_t changes = random() % 4 == 0 ? 2 : 1; changes > 0; --changes) // few, so that many are admitted
    fuzz::mutate(plan, random);
  if (plan.ByteSizeLong() > most || !plan.SerializeToArray(data, int(most)))
    return size; // unchanged
  return plan.ByteSizeLong();
}
// NOLINTEND(readability-identifier-naming)
