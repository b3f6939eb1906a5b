//===- CheckpointFolder.h - the folder of --save and --resume -------------===//
//
//   DIR/latest                 the newest checkpoint's name, as DeepSpeed writes it
//   DIR/global_step300/        a checkpoint: it has a manifest.json
//   DIR/global_step300.RUN.part/   one that is being written or removed; nobody reads it
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::runtime {

/// "global_step300"
std::string checkpointName(uint64_t step);

/// "rank-00003.safetensors"
std::string rankFileName(uint64_t rank);

/// Makes the folder and those around it where they are not there. Throws ds::Error naming it.
void makeFolder(const std::string &path);

/// What a small file of a checkpoint holds, at most `limit` bytes; nothing, and errno, if it cannot be read. A pipe,
/// which nobody may ever write into, is not read: throws ds::Error.
std::optional<std::string> readRegular(const std::string &path, size_t limit);

/// Steps of the checkpoints in a folder that have a manifest, ascending; none where there is no folder.
std::vector<uint64_t> checkpointsIn(const std::string &folder);

/// The checkpoint that --resume means: `tag` if given, else what `latest` names, else (a run may be killed before it
/// writes `latest`, and what it names may have been removed) the one of most steps, or `folder` itself where it is one.
/// Nothing where there is none and no tag was given. Throws ds::Error.
std::optional<std::string> findCheckpoint(const std::string &folder, const std::string &tag);

/// Makes `part`, whose files are whole and flushed, the checkpoint of `step`, in place of one that may be there, and
/// names it in `latest`. Throws ds::Error; what was there before is there then.
void publishCheckpoint(const std::string &folder, const std::string &part, uint64_t step);

/// Removes all but the `keep` newest: `newest` and those of fewer steps; what has more steps is of a run that was given
/// up when `newest`'s began, and goes first. Throws ds::Error.
void removeOlder(const std::string &folder, uint64_t newest, uint64_t keep);

/// Removes what runs that were killed have left unfinished. Throws ds::Error.
void removeUnfinished(const std::string &folder);

/// Removes a folder and all in it as far as it can.
void discardFolder(const std::string &path) noexcept;

/// Held by the run that writes into a folder of checkpoints, so that no two do.
class FolderLock {
public:
  /// Throws ds::Error where another run has it.
  explicit FolderLock(const std::string &folder);
  ~FolderLock();
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

private:
  int folder_ = -1;
};

} // namespace ds::runtime
