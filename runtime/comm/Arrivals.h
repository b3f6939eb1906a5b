//===- Arrivals.h - who came to a collective or message, and who did not --===//
#pragma once

#include "core/Error.h"
#include "core/Status.h"
#include "runtime/comm/Communicator.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

namespace ds::runtime {

/// One end of a channel, as errors call it.
struct EndName {
  uint32_t rank, peer; ///< of the run
  const char *verb;    ///< "send", "receive"
  const char *channel;
};

/// Who holds up all others, where a watchdog knows: "rank 1", and "queue in has not come out of feed of x".
struct Holder {
  std::string rank = {}, stands = {};
  /// The end of its sentence. `suspects`: those among whom one is, where it does not know.
  std::string text(const char *suspects) const {
    return (rank.empty() ? suspects : "; " + rank) + " stands still or is slower than --collective-timeout allows" +
           (rank.empty() ? "" : ": its " + stands);
  }
};

/// How long ago a rank was heard of; below 0: nobody knows. "; rank 3 was last heard of 12.0 s ago", or "".
class HeardText {
public:
  HeardText(uint32_t rank, int64_t agoMs) noexcept {
    if (agoMs >= 0)
      std::snprintf(text_, sizeof text_, "; rank %u was last heard of %.1f s ago", rank, double(agoMs) / 1000);
  }
  const char *text() const noexcept { return text_; }

private:
  char text_[64] = "";
};

/// The watchdog's sentence about a message. `heardMs`: how long ago the peer was heard of.
inline Status missingPeer(const EndName &end, const char *what, std::chrono::milliseconds timeout, int64_t heardMs = -1,
                          const Holder &holder = {}) noexcept {
  return Status::failure("rank %u waited %.3g s in %s on channel %s (%s) for rank %u%s%s", end.rank,
                         double(timeout.count()) / 1000, end.verb, end.channel, what, end.peer,
                         holder.text(", which").c_str(), HeardText(end.peer, heardMs).text());
}

/// Where nothing is known of the others but what arrived.
struct NeverHeard {
  int64_t operator()(size_t) const noexcept { return -1; }
};

/// The watchdog's sentence about a collective. `members`: ranks of the run, by rank of the group; `arrived(i)`: whether
/// member i has; `heardMs(i)`: how long ago it was heard of.
template <typename Arrived, typename HeardMs = NeverHeard>
Status missingRanks(uint32_t rank, const Collective &collective, std::span<const uint32_t> members,
                    std::chrono::milliseconds timeout, Arrived &&arrived, HeardMs heardMs = {},
                    const Holder &holder = {}) noexcept {
  char lists[2][160] = {"", ""}; // missing, arrived
  size_t used[2] = {0, 0};
  uint32_t quietest = 0;
  int64_t quietMs = -1;
  for (size_t i = 0; i < members.size(); ++i) {
    const size_t list = arrived(i) ? 1 : 0;
    if (const int64_t ms = list == 0 ? heardMs(i) : -1; ms > quietMs) {
      quietest = members[i];
      quietMs = ms;
    }
    if (used[list] + 16 < sizeof lists[list])
      used[list] += size_t(std::snprintf(lists[list] + used[list], sizeof lists[list] - used[list], "%s%u",
                                         used[list] > 0 ? ", " : "", members[i]));
    else if (lists[list][used[list] - 1] != '.')
      used[list] += size_t(std::snprintf(lists[list] + used[list], sizeof lists[list] - used[list], "..."));
  }
  return Status::failure("rank %u waited %.3g s in %s of %s: ranks %s arrived, ranks %s are missing%s%s", rank,
                         double(timeout.count()) / 1000, name(collective.kind), collective.what, lists[1], lists[0],
                         holder.text("; one of those").c_str(), HeardText(quietest, quietMs).text());
}

/// What requireEqual says. `digests`: by rank.
inline void requireEqualDigests(const std::string &what, std::span<const uint64_t> digests) {
  std::string others;
  for (size_t rank = 1; rank < digests.size(); ++rank)
    if (digests[rank] != digests[0])
      others += (others.empty() ? "" : ", ") + std::to_string(rank);
  if (!others.empty())
    throw Error(what + " is not the same on every rank: rank 0 differs from " + others +
                "; start all ranks with the same command line and files");
}

} // namespace ds::runtime
