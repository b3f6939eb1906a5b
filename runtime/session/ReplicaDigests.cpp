//===- ReplicaDigests.cpp - replicas that should be equal and are not -----===//
#include "runtime/session/ReplicaDigests.h"

#include "core/DType.h"
#include "core/Error.h"
#include "core/Status.h"
#include "runtime/comm/Transport.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Placement.h"
#include "runtime/session/LocalRanks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace ds::runtime {
namespace {

/// What ranks that hold it have alike: elements [first, first + count) of the piece that is one part of one version of
/// a variable.
using Alike = std::tuple<uint32_t, uint64_t, uint64_t, uint64_t, uint64_t>;

Alike alikeOf(const plan::proto::Plan &plan, const HeldPart &part, uint32_t rank) {
  const plan::proto::Variable &variable = plan.variables(int(part.variable));
  return {part.variable, plan::versionOf(plan, variable, rank), plan::partOf(plan.world(), variable.placement(), rank),
          part.first, part.count};
}

} // namespace

ReplicaDigests::ReplicaDigests(const plan::proto::Plan &plan, const LocalRanks &ranks, Transport &transport)
    : plan_(plan), ranks_(ranks), transport_(transport), held_(transport.ranks()), digests_(transport.ranks()),
      piece_((uint64_t(1) << 20) / sizeof(uint64_t)) {
  std::map<Alike, Replicated> all;
  std::vector<std::vector<HeldPart>> parts;
  for (uint32_t rank = 0; rank < transport.ranks(); ++rank)
    for (const HeldPart &part : parts.emplace_back(heldOfPieces(plan, rank)))
      if (plan.variables(int(part.variable)).kind() != plan::proto::Variable::GRADIENT) {
        Replicated &replicated = all[alikeOf(plan, part, rank)];
        replicated = {part.variable, part.first, part.count, std::move(replicated.ranks)};
        replicated.ranks.push_back(rank);
      }
  std::map<Alike, size_t> numbers;
  for (auto &[key, replicated] : all)
    if (replicated.ranks.size() > 1) {
      numbers[key] = replicated_.size();
      replicated_.push_back(std::move(replicated));
    }
  for (uint32_t rank = 0; rank < transport.ranks(); ++rank) {
    for (const HeldPart &part : parts[rank])
      if (const auto number = numbers.find(alikeOf(plan, part, rank)); number != numbers.end())
        held_[rank].push_back({number->second, part});
    digests_[rank].resize(held_[rank].size());
  }
}

uint64_t ReplicaDigests::digest(const Executor &executor, const HeldPart &part) {
  const auto elementBytes = uint64_t(byteSize(DType(plan_.variables(int(part.variable)).dtype())));
  const uint64_t pieceElements = piece_.size() * sizeof(uint64_t) / elementBytes;
  uint64_t digest = 0;
  for (uint64_t at = 0; at < part.count; at += pieceElements) {
    const uint64_t bytes = std::min(pieceElements, part.count - at) * elementBytes;
    const size_t words = (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    piece_[words - 1] = 0; // what the last word has beyond the bytes
    executor.read(part, at, std::as_writable_bytes(std::span(piece_)).first(bytes));
    digest = std::accumulate(piece_.begin(), piece_.begin() + ptrdiff_t(words), digest);
  }
  return digest;
}

void ReplicaDigests::compare(uint64_t stepsDone) {
  if (replicated_.empty())
    return;
  for (uint32_t rank = 0; rank < uint32_t(held_.size()); ++rank) {
    if (const Executor *executor = ranks_.find(rank))
      for (size_t i = 0; i < held_[rank].size(); ++i)
        digests_[rank][i] = digest(*executor, held_[rank][i].part);
    transport_.copy(rank, 0, std::as_writable_bytes(std::span(digests_[rank])));
  }
  Status difference = ranks_.hasRankZero() ? firstDifference(stepsDone) : Status::success();
  for (uint32_t rank = 1; rank < uint32_t(held_.size()); ++rank)
    transport_.copy(0, rank, std::as_writable_bytes(std::span(&difference, 1)));
  if (!difference.ok())
    throw Error(difference.message());
}

Status ReplicaDigests::firstDifference(uint64_t stepsDone) const {
  std::vector<std::vector<uint64_t>> found(replicated_.size()); // by rank, as Replicated::ranks
  for (size_t rank = 0; rank < held_.size(); ++rank)
    for (size_t i = 0; i < held_[rank].size(); ++i)
      found[held_[rank][i].replicated].push_back(digests_[rank][i]);
  for (size_t i = 0; i < replicated_.size(); ++i) {
    if (std::ranges::all_of(found[i], [&](uint64_t digest) { return digest == found[i][0]; }))
      continue;
    const Replicated &replicated = replicated_[i];
    const plan::proto::Variable &variable = plan_.variables(int(replicated.variable));
    const std::vector<plan::Run> elements =
        plan::wholeElements(plan_, variable, replicated.ranks.front(), replicated.first, replicated.count);
    const auto end = [](const plan::Run &run) { return run.first + run.count; };
    return Status::failure("after step %llu variable %s is not the same on every rank: %s (elements %llu to %llu); "
                           "memory that has flipped "
                           "a bit, other software or a bug made them train apart, so the run ends and exports nothing",
                           static_cast<unsigned long long>(stepsDone), variable.name().c_str(),
                           ranksText(replicated, found[i]).c_str(),
                           static_cast<unsigned long long>(std::ranges::min(elements, {}, &plan::Run::first).first),
                           static_cast<unsigned long long>(end(std::ranges::max(elements, {}, end)) - 1));
  }
  return Status::success();
}

/// "rank 2 differs from 0, 1, 3": those apart from the most, or from rank 0's where none are the most.
std::string ReplicaDigests::ranksText(const Replicated &replicated, const std::vector<uint64_t> &digests) const {
  const uint64_t usual =
      *std::ranges::max_element(digests, {}, [&](uint64_t digest) { return std::ranges::count(digests, digest); });
  const auto list = [&](bool same) {
    std::string text;
    int shown = 0;
    for (size_t i = 0; i < digests.size(); ++i)
      if ((digests[i] == usual) == same && ++shown <= 8)
        text += (text.empty() ? "" : ", ") + std::to_string(replicated.ranks[i]);
    return text + (shown > 8 ? ", ..." : "");
  };
  return "rank " + list(false) + " differs from " + list(true);
}

} // namespace ds::runtime
