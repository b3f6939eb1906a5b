//===- TokenColumn.cpp - samples cut from a token stream ------------------===//
#include "core/DType.h"
#include "core/Error.h"
#include "core/Status.h"
#include "runtime/data/Column.h"
#include "runtime/data/InputSpec.h"
#include "runtime/data/TokenStream.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

namespace ds::runtime {
namespace {

/// Writes int64 tokens as a narrower integer; whether all fit.
template <typename Target> bool narrow(std::span<const int64_t> tokens, std::byte *target) noexcept {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto value = Target(tokens[i]);
    if (int64_t(value) != tokens[i])
      return false;
    std::memcpy(target + i * sizeof value, &value, sizeof value);
  }
  return true;
}

bool writeTokens(std::span<const int64_t> tokens, DType dtype, std::byte *target) noexcept {
  switch (dtype) {
  case DType::U8:
    return narrow<uint8_t>(tokens, target);
  case DType::U16:
    return narrow<uint16_t>(tokens, target);
  case DType::U32:
    return narrow<uint32_t>(tokens, target);
  case DType::I32:
    return narrow<int32_t>(tokens, target);
  case DType::I64:
    return narrow<int64_t>(tokens, target);
  default:
    return false;
  }
}

class TokenColumn final : public Column {
public:
  TokenColumn(const InputSpec &input, const TokenStream &stream) : input_(input), stream_(stream) {}

  uint64_t samples() const override {
    const uint64_t usable = stream_.tokens() - std::min<uint64_t>(stream_.tokens(), shift());
    return usable / input_.sampleElements();
  }

  Status read(uint64_t sample, std::byte *target) const noexcept override {
    const uint64_t first = sample * input_.sampleElements() + shift();
    const auto elementBytes = uint64_t(byteSize(input_.dtype));
    std::array<int64_t, 1024> tokens;
    for (uint64_t done = 0; done < input_.sampleElements(); done += tokens.size()) {
      const auto part = std::span(tokens).first(std::min<uint64_t>(tokens.size(), input_.sampleElements() - done));
      if (Status status = stream_.read(first + done, part); !status.ok())
        return status;
      if (!writeTokens(part, input_.dtype, target + done * elementBytes))
        return Status::failure("input %s: a token of sample %llu is no %s", input_.name.c_str(),
                               static_cast<unsigned long long>(sample), std::string(name(input_.dtype)).c_str());
    }
    return Status::success();
  }

private:
  uint64_t shift() const { return input_.tokens == InputSpec::Tokens::Next ? 1 : 0; }

  const InputSpec &input_;
  const TokenStream &stream_;
};

} // namespace

std::unique_ptr<Column> makeTokenColumn(const InputSpec &input, const TokenStream &stream) {
  if (input.tokens == InputSpec::Tokens::None)
    throw Error("input " + input.name +
                " of the plan does not say how it follows from a token stream; give a "
                "safetensors file with one tensor per input");
  if (input.sampleElements() == 0)
    throw Error("input " + input.name + " has samples of no tokens, which a token stream cannot give");
  return std::make_unique<TokenColumn>(input, stream);
}

} // namespace ds::runtime
