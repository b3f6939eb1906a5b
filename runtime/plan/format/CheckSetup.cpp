//===- CheckSetup.cpp - machine, world, training, files, ranks, codes, tuning -----===//
#include "core/FilePage.h"
#include "runtime/plan/format/PlanChecks.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace ds::plan {
namespace {

constexpr uint64_t maxRanks = uint64_t(1) << 20;
constexpr int mostRoles = 1024; // pairs of roles grow with the square
constexpr size_t maxConfigBytes = size_t(16) << 20;
constexpr int mostCodes = 65536, mostAlgorithms = 65536;
constexpr size_t algorithmBytes = 64; // of cublasLtMatmulAlgo_t
constexpr size_t mostTextBytes = size_t(4) << 20;

void checkMachine(const proto::Machine &machine) {
  checkName(machine.name(), "machine");
  if (machine.device() != "cpu" && machine.device() != "cuda")
    refuse("machine", "its device is neither cpu nor cuda");
  if (machine.threads() < 1 || machine.threads() > 4096)
    refuse("machine", "it has " + std::to_string(machine.threads()) + " threads, not 1 to 4096");
  if (!std::has_single_bit(machine.alignment()) || machine.alignment() > (uint64_t(2) << 20))
    refuse("machine",
           "its alignment " + std::to_string(machine.alignment()) + " is no power of two from 1 to 2097152 bytes");
  checkName(machine.isa(), "machine");
  for (const proto::Link &link : machine.links()) {
    checkName(link.between(), "machine");
    if (!(link.bytes_per_second() > 0 && std::isfinite(link.bytes_per_second())))
      refuse("machine", "a link's bytes per second are no finite number above 0");
    if (!(link.latency_seconds() >= 0 && std::isfinite(link.latency_seconds())))
      refuse("machine", "a link's latency is negative or not finite");
  }
  if (!machine.has_rates())
    return;
  const proto::Rates &rates = machine.rates();
  for (double rate : {rates.bytes_per_second(), rates.float32_flops(), rates.tf32_flops(), rates.bfloat16_flops(),
                      rates.attention_flops()})
    if (!(rate > 0 && std::isfinite(rate)))
      refuse("machine", "one of its rates is no finite number above 0");
  if (!(rates.fp8_flops() >= 0 && std::isfinite(rates.fp8_flops())))
    refuse("machine", "its rate of FP8 is negative or not finite");
  if (!(rates.command_seconds() >= 0 && std::isfinite(rates.command_seconds())))
    refuse("machine", "the time of a command is negative or not finite");
}

void checkTraining(const proto::Plan &plan) {
  const proto::Training &training = plan.training();
  const uint64_t ranks = batchRanks(plan);
  constexpr uint64_t limit = uint64_t(1) << 40;
  if (training.micro_batch_size() == 0 || training.accumulation_steps() == 0)
    refuse("training", "micro_batch_size and accumulation_steps must be at least 1");
  if (training.micro_batch_size() > limit || training.accumulation_steps() > (1u << 20))
    refuse("training", "micro_batch_size or accumulation_steps is beyond 2^40 or 2^20");
  if (training.checkpoint_buffer_bytes() > limit)
    refuse("training", "checkpoint_buffer_bytes is beyond 2^40");
  const unsigned __int128 product =
      static_cast<unsigned __int128>(training.micro_batch_size()) * training.accumulation_steps() * ranks;
  if (product != training.train_batch_size())
    refuse("training", "train_batch_size " + std::to_string(training.train_batch_size()) + " is not micro_batch_size " +
                           std::to_string(training.micro_batch_size()) + " x accumulation_steps " +
                           std::to_string(training.accumulation_steps()) + " x " + std::to_string(ranks) +
                           " ranks along the axes that inputs vary along");
}

void checkRecompute(const proto::Plan &plan) {
  const proto::Recompute &recompute = plan.recompute();
  if (recompute.level() > recompute.levels())
    refuse("recompute", "its level, " + std::to_string(recompute.level()) + ", is above the highest, " +
                            std::to_string(recompute.levels()));
  if (recompute.layers_again() > recompute.layers())
    refuse("recompute", std::to_string(recompute.layers_again()) + " layers that repeat something are more than its " +
                            std::to_string(recompute.layers()) + " layers");
}

void checkNvme(const proto::NvmeFile &nvme) {
  checkName(nvme.folder(), "nvme, folder");
  if (nvme.folder().empty())
    refuse("nvme", "it names no folder");
  if (!isFileBlock(nvme.block_bytes()))
    refuse("nvme", "block_bytes is " + std::to_string(nvme.block_bytes()) + ", but must be a multiple of " +
                       std::to_string(filePage) + ", at most 2^30");
  if (nvme.queue_depth() == 0 || nvme.queue_depth() > mostFileDepth)
    refuse("nvme", "queue_depth is " + std::to_string(nvme.queue_depth()) + ", but must be from 1 to 1024");
}

void checkFilesAndConfig(const proto::Plan &plan) {
  for (int i = 0; i < plan.weight_files_size(); ++i) {
    const proto::WeightFile &file = plan.weight_files(i);
    const std::string place = describe("weight file", i, "");
    checkName(file.path(), place);
    if (file.path().empty() || file.path().front() == '/')
      refuse(place, "its path is empty or absolute, but paths are relative to the plan's folder");
  }
  if (plan.config_json().size() > maxConfigBytes)
    refuseSize("config_json", "it has more than 16 MiB");
  for (int i = 0; i < plan.config_size(); ++i) {
    const proto::ConfigAnswer &answer = plan.config(i);
    const std::string place = describe("config answer", i, "");
    checkName(answer.path(), place);
    checkName(answer.note(), place);
    if (answer.value_json().size() > maxConfigBytes)
      refuseSize(place, "its value has more than 16 MiB");
    if (answer.status() != "honoured" && answer.status() != "subsumed" && answer.status() != "rejected")
      refuse(place, "its status is none of honoured, subsumed, rejected");
  }
}

/// Every rank belongs to exactly one role.
void checkRanks(const proto::Plan &plan, uint64_t ranks) {
  std::map<std::pair<uint64_t, uint64_t>, int> roles; // by first and last rank
  if (plan.roles_size() > mostRoles)
    refuseSize("roles", "there are " + std::to_string(plan.roles_size()) + ", but a plan has at most " +
                            std::to_string(mostRoles) + ": any two of a communicator are compared");
  for (int i = 0; i < plan.roles_size(); ++i) {
    const proto::Role &role = plan.roles(i);
    const std::string place = describe("role", i, "");
    checkName(role.name(), place);
    if (role.ranks_size() == 0 || role.ranks_size() % 2 != 0)
      refuse(place, "its ranks are not pairs of a first and a last rank");
    for (int k = 0; k < role.ranks_size(); k += 2) {
      if (role.ranks(k) > role.ranks(k + 1) || (k > 0 && role.ranks(k) <= role.ranks(k - 1)))
        refuse(place, "its pairs of ranks are not ascending");
      const auto [other, isNew] = roles.try_emplace({role.ranks(k), role.ranks(k + 1)}, i);
      if (!isNew)
        refuse(place, "another role has its ranks too" +
                          note(describe("role", other->second, plan.roles(other->second).name()) + " has them first"));
    }
  }
  uint64_t next = 0;
  int before = 0; // the role that ends there
  for (const auto &[range, index] : roles) {
    const auto [first, last] = range;
    if (first != next)
      refuse("roles", "rank " + std::to_string(std::min(first, next)) + " belongs to no role or to two" +
                          (first > next ? ""
                                        : note(describe("role", before, plan.roles(before).name()) + " and " +
                                               describe("role", index, plan.roles(index).name()) + " have it")));
    next = last + 1;
    before = index;
  }
  if (next != ranks)
    refuse("roles", "they cover " + std::to_string(next) + " ranks, but the world has " + std::to_string(ranks));
}

/// A driver's compiler reads a text up to its first zero byte.
void checkText(const std::string &text, const std::string &place) {
  if (text.empty() || text.size() > mostTextBytes)
    refuse(place, "its text has " + std::to_string(text.size()) + " bytes; it must have 1 to " +
                      std::to_string(mostTextBytes));
  for (unsigned char byte : text)
    if ((byte < 0x20 && byte != '\t' && byte != '\n') || byte >= 0x7F)
      refuse(place, "its text holds the byte " + std::to_string(byte) + ", which no PTX has");
}

} // namespace

uint64_t checkWorld(const proto::World &world, const std::string &place) {
  std::set<std::string> names;
  uint64_t ranks = 1;
  for (const proto::Axis &axis : world.axes()) {
    if (axis.name() != "pipe" && axis.name() != "data" && axis.name() != "expert" && axis.name() != "tensor")
      refuse(place, "it has an axis that is none of pipe, data, expert, tensor");
    if (!names.insert(axis.name()).second)
      refuse(place, "it has two axes " + axis.name());
    if (axis.size() == 0 || axis.size() > maxRanks / ranks)
      refuseSize(place, "axis " + axis.name() + " of size " + std::to_string(axis.size()) + " makes no or more than " +
                            std::to_string(maxRanks) + " ranks");
    ranks *= axis.size();
  }
  return ranks;
}

void checkSetup(const proto::Plan &plan) {
  checkName(plan.model(), "model");
  checkName(plan.compiler_revision(), "compiler_revision");
  checkMachine(plan.machine());
  const uint64_t ranks = checkWorld(plan.world(), "world");
  checkInputPlacements(plan);
  checkTraining(plan);
  checkRecompute(plan);
  if (plan.numerics() != "bit-equal" && plan.numerics() != "reassociated" && plan.numerics() != "lossy")
    refuse("numerics", "it is none of bit-equal, reassociated, lossy");
  checkFilesAndConfig(plan);
  if (plan.has_nvme())
    checkNvme(plan.nvme());
  checkRanks(plan, ranks);
}

void checkCodes(const proto::Plan &plan) {
  if (plan.codes_size() > mostCodes)
    refuse("codes", "there are " + std::to_string(plan.codes_size()) + ", more than " + std::to_string(mostCodes));
  if (plan.codes_size() > 0 && plan.machine().device() != "cuda")
    refuse("codes", "a device " + plan.machine().device() + " runs none; only cuda does");
  OwnNames names("code");
  for (int i = 0; i < plan.codes_size(); ++i) {
    const proto::DeviceCode &code = plan.codes(i);
    const std::string place = describe("code", i, "");
    names.add(code.name(), i, place);
    checkText(code.text(), place);
    if (code.blocks() == 0 || code.blocks() > uint32_t(INT32_MAX) || code.threads() == 0 || code.threads() > 1024)
      refuse(place, "it is launched as " + std::to_string(code.blocks()) + " blocks of " +
                        std::to_string(code.threads()) + " threads; a GPU takes 1 to 2^31 - 1 of 1 to 1024");
  }
}

void checkTuning(const proto::Plan &plan) {
  if (!plan.has_tuning())
    return;
  const proto::Tuning &tuning = plan.tuning();
  if (plan.machine().device() != "cuda")
    refuse("tuning", "a device " + plan.machine().device() + " has no cuBLASLt; only cuda does");
  checkName(tuning.gpu(), "tuning");
  if (tuning.gpu().empty() || tuning.cublaslt() == 0)
    refuse("tuning", "it must name a GPU and a version of cuBLASLt");
  if (tuning.algorithms_size() > mostAlgorithms)
    refuse("tuning", "there are " + std::to_string(tuning.algorithms_size()) + " algorithms, more than " +
                         std::to_string(mostAlgorithms));
  std::set<std::string_view> known;
  for (int i = 0; i < tuning.algorithms_size(); ++i) {
    const std::string place = describe("algorithm", i, "");
    if (tuning.algorithms(i).size() != algorithmBytes)
      refuse(place, "it has " + std::to_string(tuning.algorithms(i).size()) + " bytes; cublasLtMatmulAlgo_t has " +
                        std::to_string(algorithmBytes));
    if (!known.insert(tuning.algorithms(i)).second)
      refuse(place, "it is the same as one before it");
  }
}

} // namespace ds::plan
