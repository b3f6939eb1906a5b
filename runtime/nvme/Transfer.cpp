//===- Transfer.cpp - one read or write of a file -------------------------===//
#include "runtime/nvme/Transfer.h"

#include "core/Status.h"
#include "runtime/nvme/Block.h"
#include "runtime/nvme/BlockCutter.h"
#include "runtime/nvme/BlockEngine.h"
#include "runtime/nvme/Lane.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <time.h>

namespace ds::runtime {
namespace {

constexpr int mostStalls = 1000; // of a block in a row; a second, if the system asks for patience each time

Range common(const Range &range, const BlockCutter::Cut &cut) {
  const uint64_t begin = std::max(range.offset, cut.offset), end = std::min(range.end(), cut.offset + cut.bytes);
  return {begin, range.memory + (begin - range.offset), end - begin};
}

/// Ranges in one direction, those of a write with their edges in the lane.
class Transfer {
public:
  Transfer(const TransferRules &rules, Lane &lane, Direction direction, std::span<const Range> ranges)
      : rules_(rules), lane_(lane), direction_(direction), ranges_(ranges) {}

  Status run() noexcept {
    while (true) {
      while (status_.ok() && !lane_.idle.empty() && more())
        begin(cutter_.next());
      if (lane_.idle.size() == lane_.slots.size())
        return status_;
      const BlockEngine::Ended ended = lane_.engine->wait();
      proceed(ended.tag, ended.result);
    }
  }

private:
  bool more();
  void begin(const BlockCutter::Cut &cut);
  void submit(unsigned tag);
  void proceed(unsigned tag, int64_t result);
  bool goesOn(Lane::Slot &slot, int64_t result) const;
  void finish(const Lane::Slot &slot);
  void merge(const Lane::Slot &slot) const;
  void fail(const Lane::Slot &slot, int64_t result);

  const TransferRules &rules_;
  Lane &lane_;
  const Direction direction_;
  std::span<const Range> ranges_; // those to come
  Range range_;                   // the one that is cut
  BlockCutter cutter_;
  Status status_;
};

bool Transfer::more() {
  while (cutter_.done() && !ranges_.empty()) {
    range_ = ranges_.front();
    cutter_ = BlockCutter(range_, rules_.alignment, rules_.blockBytes);
    ranges_ = ranges_.subspan(1);
  }
  return !cutter_.done();
}

void Transfer::begin(const BlockCutter::Cut &cut) {
  const unsigned tag = lane_.idle.back();
  lane_.idle.pop_back();
  Lane::Slot &slot = lane_.slots[tag];
  slot.wanted = common(range_, cut);
  slot.block = {cut.offset, cut.straight ? slot.wanted.memory : lane_.buffer(tag), cut.bytes};
  slot.done = 0;
  slot.stalls = 0;
  if (direction_ == Direction::Write) {
    if (!cut.straight)
      merge(slot);
    if (rules_.checksums) // now: should the write fail, nobody takes what is there for either content
      rules_.checksums->record(slot.block);
  }
  submit(tag);
}

/// Fills the block's buffer: the caller's bytes, before and behind them what the file has.
void Transfer::merge(const Lane::Slot &slot) const {
  const Range &block = slot.block, &wanted = slot.wanted;
  const uint64_t before = wanted.offset - block.offset, behind = block.end() - wanted.end();
  if (before > 0)
    std::memcpy(block.memory, lane_.edge(0), before);
  std::memcpy(block.memory + before, wanted.memory, wanted.bytes);
  if (behind == 0)
    return;
  const uint64_t lastPage = block.end() - pageBytes;
  const std::byte *edge = lane_.edge(lastPage == roundDown(range_.offset, pageBytes) ? 0 : 1);
  std::memcpy(block.memory + before + wanted.bytes, edge + (wanted.end() - lastPage), behind);
}

void Transfer::submit(unsigned tag) {
  const auto &[block, wanted, done, stalls] = lane_.slots[tag];
  lane_.engine->submit(tag, {direction_, {block.offset + done, block.memory + done, block.bytes - done}});
}

/// A submission of the slot has ended.
void Transfer::proceed(unsigned tag, int64_t result) {
  Lane::Slot &slot = lane_.slots[tag];
  if (goesOn(slot, result)) {
    if (status_.ok())
      return submit(tag);
  } else if (slot.done == slot.block.bytes) {
    finish(slot);
  } else {
    fail(slot, result);
  }
  lane_.idle.push_back(tag);
}

/// Whether the rest of the block is to be submitted: after a signal, and after less than was asked for. What is left
/// begins with a whole page then, as direct access wants it.
bool Transfer::goesOn(Lane::Slot &slot, int64_t result) const {
  const uint64_t before = slot.done;
  if (result > 0)
    slot.done = roundDown(slot.done + uint64_t(result), rules_.alignment.offset);
  if (result == 0 || (result < 0 && result != -EINTR && result != -EAGAIN) || slot.done == slot.block.bytes)
    return false;
  if (result == -EAGAIN) {
    const timespec millisecond{.tv_sec = 0, .tv_nsec = 1000000};
    ::nanosleep(&millisecond, nullptr);
  }
  slot.stalls = slot.done > before ? 0 : slot.stalls + 1;
  return slot.stalls < mostStalls;
}

void Transfer::finish(const Lane::Slot &slot) {
  if (direction_ == Direction::Write || !status_.ok())
    return;
  if (rules_.checksums)
    if (const std::optional<uint64_t> damaged = rules_.checksums->firstDamaged(slot.block)) {
      status_ =
          Status::failure("%s: the %" PRIu64 " bytes at offset %" PRIu64 " are not what was written there (checksum)",
                          rules_.file.c_str(), pageBytes, *damaged);
      return;
    }
  if (slot.block.memory != slot.wanted.memory)
    std::memcpy(slot.wanted.memory, slot.block.memory + (slot.wanted.offset - slot.block.offset), slot.wanted.bytes);
}

void Transfer::fail(const Lane::Slot &slot, int64_t result) {
  if (!status_.ok())
    return;
  const bool reads = direction_ == Direction::Read;
  std::array<char, 128> text{};
  const char *why = text.data();
  if (result < 0)
    why = ::strerror_r(int(-result), text.data(), text.size());
  else if (result > 0)
    why = "too little of it moves at once";
  else
    std::snprintf(text.data(), text.size(), reads ? "short read, the file ends at %" PRIu64 : "short write at %" PRIu64,
                  slot.block.offset + slot.done);
  status_ = Status::failure("%s: %s of %" PRIu64 " bytes at offset %" PRIu64 " failed: %s", rules_.file.c_str(),
                            reads ? "read" : "write", slot.block.bytes, slot.block.offset, why);
}

/// Reads into the lane the pages of which a write leaves bytes as they are: at most the first and the last.
Status readEdges(const TransferRules &rules, Lane &lane, const Range &range) {
  std::array<Range, 2> edges;
  size_t count = 0;
  const uint64_t first = roundDown(range.offset, pageBytes), last = roundDown(range.end(), pageBytes);
  const bool endsInside = last != range.end();
  if (first != range.offset || (endsInside && last == first))
    edges[count++] = {first, lane.edge(0), pageBytes};
  if (endsInside && last != first)
    edges[count++] = {last, lane.edge(1), pageBytes};
  return Transfer(rules, lane, Direction::Read, std::span(edges).first(count)).run();
}

} // namespace

Status transfer(const TransferRules &rules, Lane &lane, Direction direction, const Range &range) noexcept {
  if (direction == Direction::Write && rules.alignment.offset > 1)
    if (Status status = readEdges(rules, lane, range); !status.ok())
      return status;
  return Transfer(rules, lane, direction, std::span(&range, 1)).run();
}

} // namespace ds::runtime
