//===- Admission.cpp - how a rank and the store know each other -----------===//
#include "runtime/comm/tcp/Admission.h"

#include "core/Error.h"
#include "runtime/comm/tcp/Hmac.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <sys/random.h>
#include <vector>

namespace ds::runtime {
namespace {

void append(std::vector<std::byte> &bytes, std::span<const std::byte> more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

} // namespace

Nonce makeNonce() {
  Nonce nonce;
  if (::getrandom(nonce.data(), nonce.size(), 0) != ptrdiff_t(nonce.size()))
    throw Error("this system gives no random bytes (getrandom), which a connection between ranks needs");
  return nonce;
}

std::vector<std::byte> Admission::hello() const {
  std::vector<std::byte> value;
  append(value, std::as_bytes(std::span(&rank, 1)));
  append(value, std::as_bytes(std::span(&ranks, 1)));
  append(value, ofRank);
  return value;
}

bool Admission::readHello(std::span<const std::byte> value) {
  if (value.size() != sizeof rank + sizeof ranks + ofRank.size())
    return false;
  std::memcpy(&rank, value.data(), sizeof rank);
  std::memcpy(&ranks, value.data() + sizeof rank, sizeof ranks);
  std::memcpy(ofRank.data(), value.data() + sizeof rank + sizeof ranks, ofRank.size());
  return true;
}

std::vector<std::byte> Admission::challenge(const RunKey &key) const {
  std::vector<std::byte> value(ofStore.begin(), ofStore.end());
  append(value, proof(key, "store"));
  return value;
}

bool Admission::readChallenge(std::span<const std::byte> value, const RunKey &key) {
  if (value.size() != ofStore.size() + sizeof(Digest))
    return false;
  std::memcpy(ofStore.data(), value.data(), ofStore.size());
  return equalDigests(proof(key, "store"), value.subspan(ofStore.size()));
}

Digest Admission::proof(const RunKey &key, const std::string &who) const {
  std::vector<std::byte> message = hello(); // its fields have fixed sizes, so no two messages are alike
  append(message, ofStore);
  const std::string names = who + " of run " + key.id;
  append(message, std::as_bytes(std::span(names)));
  return hmac(key.secret, message);
}

} // namespace ds::runtime
