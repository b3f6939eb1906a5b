#include "kernels/cpu/Isa.h"
#include "core/Environment.h"
#include "kernels/cpu/TileGemm.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace ds::kernels {

namespace {

Isa widest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return !__builtin_cpu_supports("avx512bf16") ? Isa::Avx512 : requestTiles() ? Isa::Amx : Isa::Avx512Bf16;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return Isa::Avx2;
#endif
  return Isa::Baseline;
}

Isa capped() {
  constexpr std::array limits{Isa::Baseline, Isa::Avx2, Isa::Avx512, Isa::Avx512Bf16, Isa::Amx};
  std::array<std::string_view, limits.size()> names;
  std::ranges::transform(limits, names.begin(), nameOf);
  const auto cap = readChoice("DS_CPU_ISA", names);
  return cap ? std::min(widest(), limits[*cap]) : widest();
}

} // namespace

const char *nameOf(Isa isa) {
  switch (isa) {
  case Isa::Baseline:
    return "baseline";
  case Isa::Avx2:
    return "avx2";
  case Isa::Avx512:
    return "avx512";
  case Isa::Avx512Bf16:
    return "avx512_bf16";
  case Isa::Amx:
    return "amx";
  }
  return "unknown";
}

Isa isa() {
  static const Isa chosen = capped();
  return chosen;
}

} // namespace ds::kernels
