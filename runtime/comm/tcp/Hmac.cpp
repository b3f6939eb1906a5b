//===- Hmac.cpp - proof of a shared secret --------------------------------===//
#include "runtime/comm/tcp/Hmac.h"

#include "core/Error.h"

#include <cstddef>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <span>
#include <string>

namespace ds::runtime {

Digest hmac(const std::string &key, std::span<const std::byte> message) {
  Digest digest;
  if (HMAC(EVP_sha256(), key.data(), int(key.size()), reinterpret_cast<const unsigned char *>(message.data()),
           message.size(), reinterpret_cast<unsigned char *>(digest.data()), nullptr) == nullptr)
    throw Error("libcrypto cannot compute HMAC-SHA-256 here");
  return digest;
}

bool equalDigests(const Digest &a, std::span<const std::byte> b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), b.size()) == 0;
}

} // namespace ds::runtime
