//===- Admission.h - how a rank and the store know each other -------------===//
#pragma once

#include "runtime/comm/tcp/Hmac.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {

/// What all processes of a run have and others do not: an id, which tells runs apart, and a secret, which is never
/// sent.
struct RunKey {
  std::string id, secret;
};

using Nonce = std::array<std::byte, 16>;

/// Bytes that nobody can guess.
Nonce makeNonce();

/// Of a connection, in the order in which it comes to be known:
///
///   rank    Hello      the run's id, rank, ranks, a nonce
///   store   Challenge  a nonce of its own, storeProof
///   rank    Proof      rankProof
///
/// Each proves that it knows the secret, for this connection only.
struct Admission {
  uint32_t rank = 0, ranks = 0;
  Nonce ofRank{}, ofStore{};

  /// The value of Hello, and what one says. False: it is none.
  std::vector<std::byte> hello() const;
  bool readHello(std::span<const std::byte> value);
  /// The value of Challenge, and what one says. False: the store does not know the secret.
  std::vector<std::byte> challenge(const RunKey &key) const;
  bool readChallenge(std::span<const std::byte> value, const RunKey &key);

  Digest rankProof(const RunKey &key) const { return proof(key, "rank"); }

private:
  Digest proof(const RunKey &key, const std::string &who) const;
};

} // namespace ds::runtime
