//===- ArrivingData.cpp - samples that come while a run goes on -----------===//
#include "runtime/data/ArrivingData.h"

#include "core/Error.h"
#include "runtime/data/Dataset.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/types.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ds::runtime {

std::optional<ArrivingData::Samples> ArrivingData::next(const std::function<bool()> &ended) {
  while (!data_ || taken_ == data_->samples()) {
    const std::optional<std::string> path = nextLine(ended);
    if (!path)
      return std::nullopt;
    if (path->empty())
      continue;
    auto data = std::make_unique<Dataset>(inputs_, std::vector{*path}, Dataset::Order{}, sizes_);
    if (data->samples() % samplesPerStep_ != 0)
      throw Error(*path + " has " + std::to_string(data->samples()) + " samples; a file that --data - is told of has " +
                  std::to_string(samplesPerStep_) + ", those of a step, or a multiple");
    data_ = std::move(data);
    taken_ = 0;
  }
  return Samples{.data = data_.get(), .first = std::exchange(taken_, taken_ + samplesPerStep_)};
}

/// Signals restart a read, so it is poll that waits.
std::optional<std::string> ArrivingData::nextLine(const std::function<bool()> &ended) {
  constexpr size_t longest = 1 << 16; // bytes; longer than any system's paths
  constexpr int patienceMs = 50;
  for (;;) {
    if (const size_t end = text_.find('\n'); end != std::string::npos) {
      std::string line = text_.substr(0, end);
      text_.erase(0, end + 1);
      return line;
    }
    if (text_.size() > longest)
      throw Error("a line of --data - has more than " + std::to_string(longest) +
                  " bytes; each is to be the name of a data file");
    if (ended())
      return std::nullopt;
    pollfd readable{.fd = lines_, .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, patienceMs) <= 0)
      continue; // not yet, or a signal
    std::array<char, 4096> piece;
    const auto got = ::read(lines_, piece.data(), piece.size());
    if (got < 0 && errno != EINTR && errno != EAGAIN)
      throw Error(std::string("--data - cannot read stdin: ") + std::strerror(errno));
    if (got == 0) // the last line may lack its end
      return text_.empty() ? std::nullopt : std::optional(std::exchange(text_, ""));
    text_.append(piece.data(), size_t(std::max<ssize_t>(got, 0)));
  }
}

} // namespace ds::runtime
