//===- Saving.cpp - --save: checkpoints while a run goes on ---------------===//
#include "runtime/session/Saving.h"

#include "core/AtomicFile.h"
#include "core/Error.h"
#include "core/Sha256.h"
#include "core/Status.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/checkpoint/StateShares.h"
#include "runtime/checkpoint/StateWriter.h"
#include "runtime/comm/Transport.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/session/LocalRanks.h"
#include "runtime/session/RunId.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace ds::runtime {

namespace {

std::vector<StateWriter::Rank> ranksToWrite(const LocalRanks &ranks, const Transport &transport,
                                            const StateShares &shares) {
  std::vector<StateWriter::Rank> local;
  for (const uint32_t rank : transport.localRanks())
    local.push_back({ranks.find(rank), shares.parts[rank]});
  return local;
}

/// Of a rank. Where steps wait, as much as is under way at once.
uint64_t bufferBytes(const plan::proto::Plan &plan) {
  return plan.training().checkpoint_buffer_bytes() > 0 ? plan.training().checkpoint_buffer_bytes() : uint64_t(1) << 20;
}

} // namespace

Saving::Saving(const plan::proto::Plan &plan, const StateShares &shares, const LocalRanks &ranks, Transport &transport,
               const SavingOptions &options, const std::string &planPath, const Beginning &beginning)
    : plan_(plan), shares_(shares), ranks_(ranks), transport_(transport), options_(options),
      beginning_(beginning.manifest),
      writer_(plan, ranksToWrite(ranks, transport, shares), bufferBytes(plan) * transport.localRanks().size()) {
  describeRun(planPath);
  shareRunId();
  std::error_code unknown;
  if (std::filesystem::equivalent(beginning.checkpoint, pathOf(beginning_.step), unknown))
    saved_ = beginning_.step;
  if (!ranks.hasRankZero())
    return;
  makeFolder(options_.folder);
  lock_ = std::make_unique<FolderLock>(options_.folder);
  removeUnfinished(options_.folder);
  requireSavable();
}

/// Throws ds::Error where no checkpoint could be written: known before the first step. By the longest of the names to
/// come, as far as they are known; the disk may still fill up.
void Saving::requireSavable() const {
  const std::string part = partPath(UINT64_MAX), file = part + "/" + rankFileName(transport_.ranks() - 1);
  try {
    makeFolder(part);
    writeFileAtomically(file, "");
    writeFileAtomically(options_.folder + "/latest.part", "");
    std::filesystem::remove(options_.folder + "/latest.part");
  } catch (const Error &error) {
    discardFolder(part);
    throw Error("--save " + options_.folder + " cannot take a checkpoint: " + error.what());
  }
  discardFolder(part);
}

void Saving::describeRun(const std::string &planPath) {
  beginning_.deepstatic = DS_VERSION;
  beginning_.plan = hexOf(sha256OfFile(planPath));
  beginning_.model = hexOf(plan_.sources().model_sha256());
  beginning_.layout = {.ranks = plan::worldSize(plan_),
                       .dataParallel = plan::batchRanks(plan_),
                       .stages = std::max<uint64_t>(1, uint64_t(plan_.pipeline().stages_size()))};
  beginning_.layout.world = plan_.world();
  for (const plan::proto::ConfigAnswer &answer : plan_.config()) // for people
    if (answer.path() == "zero_optimization.stage")
      beginning_.layout.zero = std::strtoull(answer.value_json().c_str(), nullptr, 10);
}

void Saving::shareRunId() {
  std::string id = newRunId(); // rank 0's counts
  for (uint32_t rank = 1; rank < transport_.ranks(); ++rank)
    transport_.copy(0, rank, std::as_writable_bytes(std::span(id)));
  beginning_.run = id;
}

std::optional<Saving::Outcome> Saving::begin(uint64_t stepsDone) {
  std::optional<Outcome> before = wait();
  step_ = stepsDone;
  writer_.begin(partPath(stepsDone));
  state_ = State::Writing;
  return before;
}

void Saving::poll() {
  if (state_ == State::Writing && !transport_.anyOf(!writer_.done()))
    gather();
}

/// The first half is over, here and in all processes. Rank 0 does the second on a thread of its own.
void Saving::gather() {
  std::vector<Written> written(transport_.ranks());
  const std::vector<StateWriter::Written> mine = writer_.files();
  for (size_t i = 0; i < mine.size(); ++i) {
    Written &one = written[transport_.localRanks()[i]];
    one.status = mine[i].status;
    one.bytes = mine[i].file.bytes;
    std::ranges::copy(mine[i].file.sha256, one.sha256.begin());
  }
  for (uint32_t rank = 1; rank < transport_.ranks(); ++rank)
    transport_.copy(rank, 0, std::as_writable_bytes(std::span(&written[rank], 1)));
  if (ranks_.hasRankZero())
    published_ = std::async(std::launch::async,
                            [this, step = step_, files = std::move(written)] { return publish(step, files); });
  state_ = State::Publishing;
}

std::optional<Saving::Outcome> Saving::wait() {
  if (state_ == State::Idle)
    return std::nullopt;
  if (state_ == State::Writing)
    gather();
  Outcome outcome = ranks_.hasRankZero() ? published_.get() : Outcome();
  for (uint32_t rank = 1; rank < transport_.ranks(); ++rank)
    transport_.copy(0, rank, std::as_writable_bytes(std::span(&outcome, 1)));
  state_ = State::Idle;
  if (outcome.saved)
    saved_ = outcome.step;
  return outcome;
}

/// On rank 0, when all files are written: the manifest, then the name.
Saving::Outcome Saving::publish(uint64_t stepsDone, const std::vector<Written> &written) const {
  const std::string part = partPath(stepsDone);
  Outcome outcome{.step = stepsDone, .saved = false, .problem = {}};
  try {
    Manifest manifest = beginning_;
    manifest.step = stepsDone;
    manifest.samples += (stepsDone - beginning_.step) * beginning_.samplesPerStep;
    manifest.variables = shares_.variables;
    manifest.files.clear();
    for (uint32_t rank = 0; rank < uint32_t(written.size()); ++rank) {
      if (!written[rank].status.ok())
        throw Error(written[rank].status.message());
      manifest.files.push_back({rankFileName(rank), written[rank].bytes,
                                std::string(written[rank].sha256.begin(), written[rank].sha256.end())});
    }
    writeFileAtomically(part + "/manifest.json", manifestText(manifest));
    publishCheckpoint(options_.folder, part, stepsDone);
    outcome.saved = true;
    if (options_.keep > 0)
      removeOlder(options_.folder, stepsDone, options_.keep);
  } catch (const Error &error) {
    discardFolder(part);
    outcome.problem = Status::failure("%s", error.what());
  }
  return outcome;
}

} // namespace ds::runtime
