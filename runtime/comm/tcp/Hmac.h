//===- Hmac.h - proof of a shared secret ----------------------------------===//
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace ds::runtime {

using Digest = std::array<std::byte, 32>;

/// SHA-256 (FIPS 180-4).
Digest sha256(std::span<const std::byte> message);

/// HMAC-SHA-256 (RFC 2104): only who knows the key can tell it.
Digest hmac(const std::string &key, std::span<const std::byte> message);

/// Whether they are equal, in a time that does not tell where they differ.
bool equalDigests(const Digest &a, std::span<const std::byte> b) noexcept;

} // namespace ds::runtime
