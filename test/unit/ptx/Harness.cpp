#include "test/unit/ptx/Harness.h"

#include "core/Error.h"
#include "kernels/ptx/Buffers.h"
#include "kernels/ptx/Ptx.h"

#include <array>
#include <cstring>
#include <initializer_list>
#include <span>

namespace ds::ptx {

namespace {

constexpr uint64_t place = 0x1000;

/// The result's register: its letter.
char resultOf(std::string_view instructions) {
  for (const char kind : {'h', 'r', 'd', 'p'})
    if (instructions.find(std::string("%") + kind + "0") != std::string_view::npos)
      return kind;
  return 'r';
}

} // namespace

std::string textOf(std::string_view instructions) {
  std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n"
                     ".visible .entry t(.param .u64 t0, .param .u64 t1, .param .u64 t2, .param .u64 t3)\n{\n"
                     "  .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .b64 %to;\n"
                     "  ld.param.b64 %to, [t0];\n";
  for (const char *number : {"1", "2", "3"}) {
    const std::string n = number;
    text += "  ld.param.b64 %d" + n + ", [t" + n + "]; ld.param.b32 %r" + n + ", [t" + n + "]; ld.param.b16 %h" + n +
            ", [t" + n + "]; and.b32 %r0, %r" + n + ", 1; setp.ne.b32 %p" + n + ", %r0, 0;\n";
  }
  text += "  mov.b32 %r4, 0;\n";
  text += std::string(instructions) + "\n";
  switch (resultOf(instructions)) {
  case 'h':
    return text + "  st.b16 [%to], %h0; ret;\n}\n";
  case 'r':
    return text + "  st.b32 [%to], %r0; ret;\n}\n";
  case 'd':
    return text + "  st.b64 [%to], %d0; ret;\n}\n";
  default:
    return text + "  selp.b32 %r0, 1, 0, %p0; st.b32 [%to], %r0; ret;\n}\n";
  }
}

uint64_t evaluated(std::string_view instructions, Inputs inputs) {
  std::array<std::byte, 8> result{};
  Buffers memory;
  memory.add(place, result);
  const std::array<uint64_t, 4> parameters{place, inputs.a, inputs.b, inputs.c};
  run(parse(textOf(instructions)), "t", {1, 1}, parameters, memory);
  uint64_t value = 0;
  std::memcpy(&value, result.data(), sizeof value);
  return value;
}

std::string refusalOf(std::string_view text) {
  try {
    (void)parse(text);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

std::string refusal(std::string_view instructions) {
  const std::string sentence = refusalOf(textOf(instructions));
  const size_t quoted = sentence.find("': ");
  return quoted != std::string::npos ? sentence.substr(quoted + 3) : sentence;
}

} // namespace ds::ptx
