//===- Frame.h - what ranks and the store say to each other ---------------===//
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {

enum class FrameKind : uint8_t {
  // From a rank.
  Hello = 1, ///< key: the run's id; see Admission.h
  Proof,
  Put,    ///< keeps value under key
  Take,   ///< wants the value under key, which is then forgotten
  Gather, ///< gives its value and wants those of all ranks under key
  Beat,   ///< this rank runs
  Bye,    ///< will close the connection, and all is well
  // From the store.
  Challenge,
  Value, ///< what was wanted
  Late,  ///< was not there in time; value: an Attendance of each rank
  // From both.
  Fail, ///< value: the sentence that every rank ends with
};

struct Attendance {
  uint32_t came = 0;    ///< 1: to what was gathered
  int32_t heardMs = -1; ///< how long ago the store has heard of it; -1: never
};

struct Frame {
  FrameKind kind;
  std::string key;
  std::vector<std::byte> value;
  std::chrono::milliseconds timeout{0}; ///< Take, Gather: when to answer Late
};

inline constexpr size_t maxKeyBytes = 256;
/// Of a value: from who has not proved yet to be a rank, from a rank, and of what the store gathers of all ranks.
inline constexpr size_t maxStrangerBytes = 64, maxValueBytes = size_t(1) << 20, maxAnswerBytes = size_t(64) << 20;

std::vector<std::byte> encode(const Frame &frame);

/// Cuts frames from the front of what has been received.
class FrameReader {
public:
  explicit FrameReader(size_t maxValue) : maxValue_(maxValue) {}
  void allow(size_t maxValue) noexcept { maxValue_ = maxValue; }

  void add(std::span<const std::byte> bytes);
  /// The next whole frame, or none yet.
  std::optional<Frame> next();
  /// Whether what came is no frame; nothing after it makes sense.
  bool garbage() const noexcept { return garbage_; }

private:
  size_t maxValue_; // bytes
  std::vector<std::byte> received_;
  size_t read_ = 0; // of received_, from its beginning
  bool garbage_ = false;
};

} // namespace ds::runtime
