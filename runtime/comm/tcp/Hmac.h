//===- Hmac.h - proof of a shared secret ----------------------------------===//
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace ds::runtime {

using Digest = std::array<std::byte, 32>;

/// HMAC-SHA-256 (RFC 2104): only who knows the key can tell it. Throws Error where libcrypto has no SHA-256.
Digest hmac(const std::string &key, std::span<const std::byte> message);

/// Whether they are equal, in a time that does not tell where they differ.
bool equalDigests(const Digest &a, std::span<const std::byte> b) noexcept;

} // namespace ds::runtime
