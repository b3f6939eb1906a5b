//===- Shortening.h - sentences that do not fit ---------------------------===//
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

namespace ds {

/// Copies a sentence, ended by a 0. Where it does not fit, "..." stands for its middle: it begins with what failed and
/// ends with the reason, and a path lies between. No character of UTF-8 is cut.
inline void copyShortened(std::string_view text, std::span<char> to) noexcept {
  constexpr std::string_view gap = "...";
  const auto isWithin = [&](size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  size_t head = text.size(), tail = text.size(); // what stays is before the one and from the other on
  if (text.size() >= to.size()) {
    const size_t room = to.size() - 1 - gap.size();
    for (head = room / 2; head > 0 && isWithin(head);)
      --head;
    for (tail = text.size() - (room - room / 2); isWithin(tail);)
      ++tail;
  }
  char *end = std::copy_n(text.data(), head, to.data());
  if (head < text.size())
    end = std::copy(gap.begin(), gap.end(), end);
  *std::copy(text.begin() + ptrdiff_t(tail), text.end(), end) = '\0';
}

} // namespace ds
