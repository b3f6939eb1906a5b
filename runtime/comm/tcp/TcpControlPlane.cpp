//===- TcpControlPlane.cpp - processes that find each other by TCP --------===//
#include "runtime/comm/tcp/TcpControlPlane.h"

#include "core/Error.h"
#include "core/Status.h"
#include "runtime/comm/Arrivals.h"
#include "runtime/comm/tcp/Admission.h"
#include "runtime/comm/tcp/Frame.h"
#include "runtime/comm/tcp/Socket.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

constexpr size_t pieceBytes = maxValueBytes; // of what is received; the store holds one piece of a pair at a time

} // namespace

TcpControlPlane::TcpControlPlane(const StoreAddress &address, uint32_t rank, uint32_t ranks,
                                 std::chrono::milliseconds timeout, const RunKey &key)
    : rank_(rank), ranks_(ranks), localRanks_{rank}, timeout_(timeout),
      store_(address, rank, ranks, key, timeout,
             [this](const std::string &text) { (void)failure_.report(Status::failure("%s", text.c_str())); }) {}

void TcpControlPlane::stop(const Status &status) noexcept {
  if (failure_.report(status))
    store_.fail(status.message());
}

void TcpControlPlane::copy(uint32_t from, uint32_t to, std::span<std::byte> bytes) {
  if (from == to || (rank_ != from && rank_ != to))
    return;
  const std::chrono::milliseconds limit = timeout_.load() + (rank_ == 0 ? std::chrono::seconds(0) : graceOfRankZero);
  for (size_t at = 0; at < bytes.size(); at += pieceBytes) {
    const std::span<std::byte> piece = bytes.subspan(at, std::min(pieceBytes, bytes.size() - at));
    const std::string name = "piece " + std::to_string(++copied_[{from, to}]) + " from rank " + std::to_string(from) +
                             " to rank " + std::to_string(to);
    const std::string receipt = "the receipt of " + name;
    if (rank_ == from) {
      store_.put(name, piece);
      (void)store_.take(receipt, to, limit);
      continue;
    }
    const std::vector<std::byte> received = store_.take(name, from, limit);
    if (received.size() != piece.size())
      throw Error("rank " + std::to_string(rank_) + " expected " + std::to_string(piece.size()) + " bytes of rank " +
                  std::to_string(from) + ", which sent " + std::to_string(received.size()));
    std::memcpy(piece.data(), received.data(), piece.size());
    store_.put(receipt, {});
  }
}

std::vector<std::byte> TcpControlPlane::gather(std::span<const std::byte> value, const char *what) {
  try {
    return store_.gather(std::to_string(++gathered_), value, timeout_, what);
  } catch (const std::exception &error) {
    stop(Status::failure("%s", error.what())); // who has waited in vain hears of it like all others
    throw;
  }
}

bool TcpControlPlane::anyOf(bool mine) noexcept {
  try {
    const std::byte flag{mine ? uint8_t(1) : uint8_t(0)};
    const std::vector<std::byte> flags = gather({&flag, 1}, "the end of a step");
    return std::ranges::find(flags, std::byte(1)) != flags.end();
  } catch (const std::exception &) {
    return true;
  }
}

void TcpControlPlane::requireEqual(const std::string &what, uint64_t digest) {
  const std::vector<std::byte> all = gather(std::as_bytes(std::span(&digest, 1)), what.c_str());
  std::vector<uint64_t> digests(ranks_);
  std::memcpy(digests.data(), all.data(), std::min(all.size(), ranks_ * sizeof(uint64_t)));
  requireEqualDigests(what, digests);
}

void TcpControlPlane::finish() {
  (void)gather({}, "the end of the run");
  store_.finish();
}

} // namespace ds::runtime
