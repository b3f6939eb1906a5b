//===- Hmac.cpp - proof of a shared secret --------------------------------===//
#include "runtime/comm/tcp/Hmac.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {
namespace {

constexpr size_t blockBytes = 64;

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, 64> roundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<uint32_t, 8>;

void addBlock(State &state, std::span<const std::byte> block) {
  std::array<uint32_t, 64> w{};
  for (size_t i = 0; i < blockBytes; ++i)
    w[i / 4] = w[i / 4] << 8 | uint32_t(block[i]);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + roundConstants[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const State sums = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < state.size(); ++i)
    state[i] += sums[i];
}

} // namespace

Digest sha256(std::span<const std::byte> message) {
  std::vector<std::byte> padded(message.begin(), message.end());
  padded.push_back(std::byte(0x80));
  padded.resize((padded.size() + 8 + blockBytes - 1) / blockBytes * blockBytes);
  const uint64_t bits = uint64_t(message.size()) * 8;
  for (size_t i = 0; i < 8; ++i)
    padded[padded.size() - 1 - i] = std::byte(bits >> 8 * i);
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  for (size_t at = 0; at < padded.size(); at += blockBytes)
    addBlock(state, std::span(padded).subspan(at, blockBytes));
  Digest digest;
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = std::byte(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Digest hmac(const std::string &key, std::span<const std::byte> message) {
  const auto keyBytes = std::as_bytes(std::span(key));
  std::vector<std::byte> block(keyBytes.begin(), keyBytes.end());
  if (block.size() > blockBytes) {
    const Digest shorter = sha256(keyBytes);
    block.assign(shorter.begin(), shorter.end());
  }
  block.resize(blockBytes);
  const auto hashed = [&](std::byte pad, std::span<const std::byte> rest) {
    std::vector<std::byte> bytes(blockBytes);
    std::ranges::transform(block, bytes.begin(), [pad](std::byte byte) { return byte ^ pad; });
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    return sha256(bytes);
  };
  return hashed(std::byte(0x5C), hashed(std::byte(0x36), message));
}

bool equalDigests(const Digest &a, std::span<const std::byte> b) noexcept {
  std::byte difference{a.size() == b.size() ? uint8_t(0) : uint8_t(1)};
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    difference |= a[i] ^ b[i];
  return difference == std::byte(0);
}

} // namespace ds::runtime
