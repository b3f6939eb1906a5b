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

constexpr uint64_t pieceBytes = uint64_t(1) << 20; // copied or written at once, so that both threads are busy

} // namespace

StateWriter::StateWriter(const plan::proto::Plan &plan, std::vector<Rank> ranks, uint64_t bufferBytes)
    : plan_(plan), ranks_(std::move(ranks)), ring_(bufferBytes) {}

StateWriter::~StateWriter() { (void)files(); }

void StateWriter::begin(std::string folder) {
  folder_ = std::move(folder);
  written_.clear();
  ring_.restart();
  done_ = false;
  bool beside = true;
  for (const Rank &rank : ranks_) {
    rank.executor->gate()->close();
    beside &= rank.executor->device().isMainMemory("device");
  }
  copier_ = std::thread([this] { copyAll(); });
  writer_ = std::thread([this] { writeAll(); });
  if (!beside)
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

void StateWriter::copyAll() {
  for (const Rank &rank : ranks_) {
    rank.executor->device().enter();
    for (size_t i = 0; i < rank.parts.size(); ++i) {
      copyPart(*rank.executor, rank.parts[i]);
      rank.executor->gate()->copied(i + 1);
    }
    rank.executor->gate()->copied(SIZE_MAX);
  }
}

void StateWriter::copyPart(const Executor &executor, const HeldPart &part) {
  const std::byte *from = executor.storage().buffer(part.buffer).base + part.byteOffset;
  for (uint64_t left = bytesOf(part); left > 0;) {
    const std::span<std::byte> room = ring_.room(std::min(left, pieceBytes));
    executor.device().read(room, from);
    ring_.put(room.size());
    from += room.size();
    left -= room.size();
  }
}

void StateWriter::writeAll() {
  for (const Rank &rank : ranks_)
    written_.push_back(write(rank));
  done_ = true;
}

/// Takes all bytes of the rank from the ring, whether they can be written or not: the copier, and with it the run, goes
/// on.
StateWriter::Written StateWriter::write(const Rank &rank) {
  Written written;
  uint64_t left = 0, pending = 0;
  for (const HeldPart &part : rank.parts)
    left += bytesOf(part);
  const auto next = [&](uint64_t most) {
    ring_.take(std::exchange(pending, 0));
    const std::span<const std::byte> bytes = ring_.content(std::min(most, pieceBytes));
    pending = bytes.size();
    left -= pending;
    return bytes;
  };
  try {
    makeFolder(folder_);
    written.file = writeRankFile(folder_, rank.executor->position().rank, plan_, rank.parts, next);
  } catch (const std::exception &error) {
    written.status = Status::failure("%s", error.what());
  }
  while (left > 0)
    (void)next(left);
  ring_.take(pending);
  return written;
}

} // namespace ds::runtime
