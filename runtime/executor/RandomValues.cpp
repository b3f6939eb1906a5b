//===- RandomValues.cpp - first values drawn from Philox ------------------===//
#include "runtime/executor/RandomValues.h"

#include "core/DType.h"
#include "kernels/Numbers.h"
#include "kernels/Philox.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <system_error>
#include <thread>
#include <vector>

namespace ds::runtime {

void RandomValues::draw(uint64_t block, double (&values)[4]) const {
  constexpr double unit = 0x1p-32;
  const auto words = kernels::philoxElements(kernels::philoxStepKey(seed, 0), UINT32_MAX, variable, block);
  if (!normal) {
    for (int i = 0; i < 4; ++i)
      values[i] = mean + deviation * (2 * (words[size_t(i)] * unit) - 1);
    return;
  }
  for (size_t i = 0; i < 4; i += 2) { // Box and Muller 1958: two words, two values
    const double radius = std::sqrt(-2 * std::log((words[i] + 1.0) * unit));
    const double angle = 2 * std::numbers::pi * (words[i + 1] * unit);
    values[i] = mean + deviation * radius * std::cos(angle);
    values[i + 1] = mean + deviation * radius * std::sin(angle);
  }
}

void RandomValues::write(DType dtype, uint64_t first, uint64_t count, std::byte *target, unsigned threads) const {
  constexpr uint64_t worthThread = 1 << 14; // elements; some 50 ns each
  const uint64_t parts = std::clamp<uint64_t>(count / worthThread, 1, threads);
  std::vector<std::thread> others;
  for (uint64_t part = 1; part < parts; ++part) {
    const uint64_t begin = count * part / parts, end = count * (part + 1) / parts;
    const auto work = [=, this] {
      writePart(dtype, first + begin, end - begin, target + begin * uint64_t(byteSize(dtype)));
    };
    try {
      others.emplace_back(work);
    } catch (const std::system_error &) { // no more threads are to be had
      work();
    }
  }
  writePart(dtype, first, count / parts, target);
  for (std::thread &other : others)
    other.join();
}

void RandomValues::writePart(DType dtype, uint64_t first, uint64_t count, std::byte *target) const {
  double values[4];
  uint64_t drawn = UINT64_MAX;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t element = first + i;
    if (element / 4 != drawn)
      draw(drawn = element / 4, values);
    kernels::storeDouble(target + i * uint64_t(byteSize(dtype)), dtype, values[element % 4]);
  }
}

} // namespace ds::runtime
