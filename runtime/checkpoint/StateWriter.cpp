//===- StateWriter.cpp - the files of ranks, written beside training ------===//
#include "runtime/checkpoint/StateWriter.h"

#include "core/DType.h"
#include "core/Status.h"
#include "runtime/checkpoint/ByteRing.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/RankFile.h"
#include "runtime/device/Device.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/executor/StateGate.h"
#include "runtime/executor/Storage.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

constexpr uint64_t pieceBytes = uint64_t(1) << 18; // copied or written at once; a core's cache holds it

} // namespace

StateWriter::StateWriter(const plan::proto::Plan &plan, std::vector<Rank> ranks, uint64_t bufferBytes)
    : plan_(plan), ranks_(std::move(ranks)), ring_(bufferBytes), piece_(pieceBytes) {}

StateWriter::~StateWriter() { (void)files(); }

void StateWriter::begin(std::string folder) {
  folder_ = std::move(folder);
  written_.clear();
  ring_.restart();
  cursor_ = {};
  buffered_ = false;
  pending_ = 0;
  done_ = false;
  for (const Rank &rank : ranks_) {
    rank.executor->gate()->close([this] { ask(); });
    buffered_ |= !rank.executor->device().isMainMemory("device");
  }
  skipEmptyParts();
  const bool atOnce = buffered_;
  copier_ = std::thread([this] { copyRest(); });
  writer_ = std::thread([this] { writeAll(); });
  if (atOnce)
    copier_.join();
}

std::vector<StateWriter::Written> StateWriter::files() {
  for (std::thread *thread : {&copier_, &writer_})
    if (thread->joinable())
      thread->join();
  return std::move(written_);
}

uint64_t StateWriter::bytesOf(const HeldPart &part) const {
  return part.count * uint64_t(byteSize(DType(plan_.variables(int(part.variable)).dtype())));
}

void StateWriter::ask() noexcept {
  const std::lock_guard lock(mutex_);
  buffered_ = true;
  asked_.notify_one();
}

/// Waits until somebody asks for it, or nothing is left.
void StateWriter::copyRest() {
  std::unique_lock lock(mutex_);
  asked_.wait(lock, [this] { return buffered_ || cursor_.rank == ranks_.size(); });
  lock.unlock(); // the cursor is this thread's now
  while (cursor_.rank < ranks_.size())
    ring_.put(copyNext(ring_.room(pieceBytes)));
}

/// Copies at most as much as there is room for, all of one part, and moves the cursor behind it. Returns the bytes.
size_t StateWriter::copyNext(std::span<std::byte> to) {
  const Rank &rank = ranks_[cursor_.rank];
  const HeldPart &part = rank.parts[cursor_.part];
  const uint64_t left = bytesOf(part) - cursor_.offset;
  to = to.first(std::min<size_t>(to.size(), left));
  rank.executor->device().enter();
  rank.executor->device().read(to,
                               rank.executor->storage().buffer(part.buffer).base + part.byteOffset + cursor_.offset);
  cursor_.offset += to.size();
  if (to.size() == left) {
    cursor_.offset = 0;
    rank.executor->gate()->copied(++cursor_.part);
    skipEmptyParts();
  }
  return to.size();
}

/// Moves the cursor to bytes, or to the end, and opens gates on the way.
void StateWriter::skipEmptyParts() {
  for (; cursor_.rank < ranks_.size(); ++cursor_.rank, cursor_.part = 0) {
    const Rank &rank = ranks_[cursor_.rank];
    while (cursor_.part < rank.parts.size() && bytesOf(rank.parts[cursor_.part]) == 0)
      ++cursor_.part;
    if (cursor_.part < rank.parts.size())
      return;
    rank.executor->gate()->copied(SIZE_MAX);
  }
}

/// At most as many bytes, all of one part, behind those that the last call gave. They hold until the next call.
std::span<const std::byte> StateWriter::next(uint64_t most) {
  most = std::min(most, pieceBytes);
  ring_.take(std::exchange(pending_, 0));
  {
    const std::lock_guard lock(mutex_);
    if (!buffered_) {
      const size_t count = copyNext(std::span(piece_).first(most));
      asked_.notify_one(); // the last bytes were the copier's, too
      return std::span(piece_).first(count);
    }
  }
  const std::span<const std::byte> bytes = ring_.content(most);
  pending_ = bytes.size();
  return bytes;
}

void StateWriter::writeAll() {
  for (const Rank &rank : ranks_)
    written_.push_back(write(rank));
  done_ = true;
}

/// Takes all bytes of the rank, whether they can be written or not: the run goes on.
StateWriter::Written StateWriter::write(const Rank &rank) {
  Written written;
  uint64_t left = 0;
  for (const HeldPart &part : rank.parts)
    left += bytesOf(part);
  const auto take = [&](uint64_t most) {
    const std::span<const std::byte> bytes = next(most);
    left -= bytes.size();
    return bytes;
  };
  try {
    makeFolder(folder_);
    written.file = writeRankFile(folder_, rank.executor->position().rank, plan_, rank.parts, take);
    if (const Status failure = rank.executor->device().failure(); !failure.ok()) // what was read may be no state
      written.status = failure;
  } catch (const std::exception &error) {
    written.status = Status::failure("%s", error.what());
  }
  while (left > 0)
    (void)take(left);
  return written;
}

} // namespace ds::runtime
