//===- Resuming.cpp - --resume: where a run goes on -----------------------===//
#include "runtime/session/Resuming.h"

#include "core/Crc32c.h"
#include "core/Error.h"
#include "core/Sha256.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/comm/Transport.h"
#include "runtime/data/FileDigest.h"
#include "runtime/data/ReadOnlyFile.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/SetValues.h"
#include "runtime/session/TrainingOptions.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

std::string digestText(uint64_t digest) {
  std::array<char, 17> text;
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(digest));
  return text.data();
}

/// What the run was begun with holds on, so that a resumed run is the same; a flag that says otherwise is a mistake.
void refuseContradictions(const TrainingOptions &options, const std::string &checkpoint, const Manifest &manifest) {
  if (options.seed && *options.seed != manifest.seed)
    throw Error("--seed " + std::to_string(*options.seed) + " contradicts checkpoint " + checkpoint +
                ", whose run has --seed " + std::to_string(manifest.seed) + "; leave --seed out to resume");
  if (options.shuffle && !manifest.shuffle)
    throw Error("--shuffle contradicts checkpoint " + checkpoint + ", whose run does not shuffle; leave it out");
}

void noteOtherData(const std::vector<Manifest::DataFile> &now, Beginning &beginning) {
  const auto same = [](const Manifest::DataFile &one, const Manifest::DataFile &other) {
    return one.bytes == other.bytes && one.digest == other.digest; // it may have moved
  };
  const std::vector<Manifest::DataFile> &before = beginning.manifest.data;
  if (!before.empty() && !now.empty() && !std::ranges::equal(now, before, same))
    beginning.notes.push_back("--data is not what checkpoint " + beginning.checkpoint +
                              " was trained on; the run goes on at sample " +
                              std::to_string(beginning.manifest.samples) + " of it");
}

/// What --set changed before stays changed in the same plan; another one has its own values.
void keepSettings(const TrainingOptions &options, Beginning &beginning) {
  std::vector<Manifest::Change> &set = beginning.manifest.set;
  if (!set.empty() && ds::hexOf(sha256OfFile(options.planPath)) != beginning.manifest.plan) {
    beginning.notes.push_back("checkpoint " + beginning.checkpoint + " was made with --set " + set.back().key + "=" +
                              set.back().value + ", which is not used, as this is another plan; give --set again");
    set.clear();
  }
  for (Manifest::Change &change : parseSettings(options.set, beginning.manifest.step))
    set.push_back(std::move(change));
}

} // namespace

std::vector<Manifest::DataFile> dataFiles(const TrainingOptions &options) {
  std::vector<Manifest::DataFile> files;
  if (dataArrives(options))
    return files; // nobody knows which will come
  for (const std::string &path : options.data) {
    const ReadOnlyFile file(path);
    files.push_back({std::filesystem::path(path).filename(), file.bytes(), digestText(fileDigest(file))});
  }
  return files;
}

Beginning findBeginning(const TrainingOptions &options, const plan::proto::Plan &plan, Transport &transport) {
  Beginning beginning;
  if (!options.resume.empty()) {
    const std::optional<std::string> found = findCheckpoint(options.resume, options.resumeTag);
    if (!found && !options.resumeIfPresent)
      throw Error("--resume " + options.resume +
                  " has no checkpoint (a folder global_stepN with a manifest.json); --resume-if-present starts a "
                  "first run");
    if (found) {
      beginning.checkpoint = *found;
      beginning.manifest = readManifest(*found + "/manifest.json");
      if (!beginning.manifest.isSealed)
        beginning.notes.push_back(unsealedNote(*found));
      refuseContradictions(options, *found, beginning.manifest);
    }
    const std::string text = found ? manifestText(beginning.manifest) : "";
    transport.requireEqual("the checkpoint of --resume", crc32c(std::as_bytes(std::span(text))));
  }
  const bool begins = beginning.checkpoint.empty();
  if (begins) {
    beginning.manifest.seed = options.seed.value_or(0);
    beginning.manifest.shuffle = options.shuffle;
  }
  keepSettings(options, beginning);
  beginning.manifest.samplesPerStep = plan.training().train_batch_size();
  if (!options.saving.folder.empty() || !begins) {
    std::vector<Manifest::DataFile> now = dataFiles(options);
    noteOtherData(now, beginning);
    beginning.manifest.data = std::move(now);
  }
  return beginning;
}

} // namespace ds::runtime
