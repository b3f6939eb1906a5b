//===- Sha256.cpp - which file it was -------------------------------------===//
#include "core/Sha256.h"

#include "core/Error.h"
#include "core/Files.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <openssl/evp.h>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace ds {
namespace {

void require(bool done) {
  if (!done)
    throw Error("libcrypto cannot compute SHA-256 here");
}

} // namespace

struct Sha256::Context {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> libcrypto{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  require(context_->libcrypto && EVP_DigestInit_ex(context_->libcrypto.get(), EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::add(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(context_->libcrypto.get(), bytes.data(), bytes.size()) == 1);
  bytes_ += bytes.size();
}

std::string Sha256::finish() {
  std::string digest(32, '\0');
  require(EVP_DigestFinal_ex(context_->libcrypto.get(), reinterpret_cast<unsigned char *>(digest.data()), nullptr) ==
          1);
  return digest;
}

std::string sha256(std::span<const std::byte> bytes) {
  Sha256 digest;
  digest.add(bytes);
  return digest.finish();
}

std::string sha256OfFile(const std::filesystem::path &path) {
  const int file = openRegularFile(path.string());
  Sha256 digest;
  std::vector<std::byte> piece(size_t(1) << 20);
  ssize_t got = file < 0 ? -1 : 1;
  while (file >= 0 && (got > 0 || (got < 0 && errno == EINTR))) {
    got = ::read(file, piece.data(), piece.size());
    if (got > 0)
      digest.add(std::span(piece).first(size_t(got)));
  }
  const int error = errno;
  if (file >= 0)
    ::close(file);
  if (got < 0)
    throw Error(path.string() + ": cannot be read: " + std::strerror(error));
  return digest.finish();
}

std::string hexOf(std::string_view bytes) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += digits[static_cast<unsigned char>(byte) >> 4];
    text += digits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

} // namespace ds
