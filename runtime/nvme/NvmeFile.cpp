//===- NvmeFile.cpp - bytes of a rank in a file of its own ----------------===//
#include "runtime/nvme/NvmeFile.h"

#include "core/Error.h"
#include "core/FilePage.h"
#include "core/Status.h"
#include "runtime/nvme/Block.h"
#include "runtime/nvme/BlockEngine.h"
#include "runtime/nvme/Lane.h"
#include "runtime/nvme/PageChecksums.h"
#include "runtime/nvme/RingEngine.h"
#include "runtime/nvme/ScratchFile.h"
#include "runtime/nvme/Transfer.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

void check(const NvmeOptions &options) {
  if (!isFileBlock(options.blockBytes))
    throw Error("a file's block of " + std::to_string(options.blockBytes) + " bytes is not a multiple of " +
                std::to_string(pageBytes) + " up to " + std::to_string(mostFileBlock));
  if (options.queueDepth < 1 || options.queueDepth > mostFileDepth)
    throw Error("a file's queue depth of " + std::to_string(options.queueDepth) + " is not in 1 to " +
                std::to_string(mostFileDepth));
}

/// Bytes moved, or -errno.
int64_t moveOnce(BlockEngine &engine, const Block &block) {
  int64_t result = -EINTR;
  for (int tries = 0; tries < 100 && (result == -EINTR || result == -EAGAIN); ++tries) {
    engine.submit(0, block);
    result = engine.wait().result;
  }
  return result;
}

/// Writes the first page, all zeros as it is, and reads it: 0, or the errno of what failed.
int probe(const Lane &lane) {
  for (const Direction direction : {Direction::Write, Direction::Read})
    if (const int64_t result = moveOnce(*lane.engine, {direction, {0, lane.edge(0), pageBytes}}); result < 0)
      return int(-result);
  return 0;
}

/// The lanes that no call uses.
class IdleLanes {
public:
  void add(Lane &lane) { idle_.push_back(&lane); }

  Lane &take() noexcept {
    std::unique_lock lock(mutex_);
    given_.wait(lock, [this] { return !idle_.empty(); });
    Lane &lane = *idle_.back();
    idle_.pop_back();
    return lane;
  }

  void give(Lane &lane) noexcept {
    {
      const std::lock_guard lock(mutex_);
      idle_.push_back(&lane); // there was room for it
    }
    given_.notify_one();
  }

private:
  std::mutex mutex_;
  std::condition_variable given_;
  std::vector<Lane *> idle_;
};

} // namespace

struct NvmeFile::State {
  State(const std::string &folder, uint32_t rank, uint64_t itsBytes, const NvmeOptions &options);

  std::string openLanes(const NvmeOptions &options);
  std::string chooseAccess(const NvmeOptions &options);
  Status move(Direction direction, const Range &range) noexcept;

  const std::string name; // for sentences
  const uint64_t bytes;
  ScratchFile file;
  TransferRules rules;
  std::vector<std::unique_ptr<Lane>> all;
  IdleLanes idle;
  std::string note;
};

NvmeFile::State::State(const std::string &folder, uint32_t rank, uint64_t itsBytes, const NvmeOptions &options)
    : name("rank " + std::to_string(rank) + "'s file in " + folder), bytes(itsBytes),
      file(folder, name, std::max(pageBytes, roundUp(itsBytes, pageBytes))) {
  rules.file = name;
  rules.blockBytes = options.blockBytes;
  note = openLanes(options);
  note += "; " + chooseAccess(options);
  if (options.checksums) {
    rules.checksums = std::make_unique<PageChecksums>(std::max(pageBytes, roundUp(itsBytes, pageBytes)));
    rules.alignment.offset = pageBytes; // a checksum is of a whole page, however it is read
    note += "; with checksums";
  }
  if (!file.reserved())
    note += "; this file system cannot reserve its bytes, so the disk may be full later";
  for (const std::unique_ptr<Lane> &lane : all)
    idle.add(*lane);
}

/// All with rings, or none. Returns which, for the note.
std::string NvmeFile::State::openLanes(const NvmeOptions &options) {
  std::string refusal = "io_uring is not allowed";
  std::vector<std::unique_ptr<BlockEngine>> engines;
  for (int i = 0; i < lanes && options.allowRing; ++i)
    if (auto ring = RingEngine::make(file.descriptor(), unsigned(options.queueDepth), options.faults, refusal))
      engines.push_back(std::move(ring));
  const bool rings = engines.size() == lanes;
  if (!rings)
    engines.clear();
  for (int i = 0; i < lanes && !rings; ++i)
    engines.push_back(std::make_unique<PlainEngine>(file.descriptor(), options.faults));
  for (std::unique_ptr<BlockEngine> &engine : engines)
    all.push_back(std::make_unique<Lane>(std::move(engine), options.blockBytes));
  const std::string size = std::to_string(options.blockBytes) + " bytes";
  return rings ? "io_uring, " + std::to_string(options.queueDepth) + " blocks of " + size + " at once"
               : "blocks of " + size + " one after another (" + refusal + ")";
}

/// Direct, or through the page cache where that is refused: when it is asked for, or at the first write or read, as
/// some file systems do. Returns which, for the note.
std::string NvmeFile::State::chooseAccess(const NvmeOptions &options) {
  std::string refusal = "direct access is not allowed";
  std::optional<Alignment> direct;
  if (options.allowDirect)
    direct = file.goDirect(refusal);
  int error = probe(*all.front());
  if (direct && (error == EINVAL || error == EOPNOTSUPP)) {
    refusal = std::string("the file system refuses direct reads or writes: ") + std::strerror(error);
    direct.reset();
    file.goBuffered();
    error = probe(*all.front());
  }
  if (error != 0)
    throw Error(name + " cannot be written and read: " + std::strerror(error) + "; a folder of another disk may do");
  rules.alignment = direct.value_or(Alignment());
  return direct ? "direct, memory aligned to " + std::to_string(direct->memory)
                : "through the page cache (" + refusal + ")";
}

Status NvmeFile::State::move(Direction direction, const Range &range) noexcept {
  if (range.bytes > bytes || range.offset > bytes - range.bytes)
    return Status::failure("%s: %" PRIu64 " bytes at offset %" PRIu64 " are not in its %" PRIu64, name.c_str(),
                           range.bytes, range.offset, bytes);
  if (range.bytes == 0)
    return Status::success();
  Lane &lane = idle.take();
  const Status status = transfer(rules, lane, direction, range);
  idle.give(lane);
  return status;
}

NvmeFile::NvmeFile(const std::string &folder, uint32_t rank, uint64_t bytes, const NvmeOptions &options) {
  check(options);
  state_ = std::make_unique<State>(folder, rank, bytes, options);
}

NvmeFile::~NvmeFile() = default;

Status NvmeFile::read(uint64_t offset, std::span<std::byte> target) noexcept {
  return state_->move(Direction::Read, {offset, target.data(), target.size()});
}

/// No engine writes to the source's memory.
Status NvmeFile::write(uint64_t offset, std::span<const std::byte> source) noexcept {
  return state_->move(Direction::Write, {offset, const_cast<std::byte *>(source.data()), source.size()});
}

uint64_t NvmeFile::bytes() const noexcept { return state_->bytes; }

const std::string &NvmeFile::note() const noexcept { return state_->note; }

} // namespace ds::runtime
