// zc layout: how a model is cut.
#include "cli/failure.hpp"
#include "cli/model_layout.hpp"
#include "cli/output.hpp"

#include <fmt/format.h>

#include <iterator>

namespace zerocomm::cli {
namespace {

std::string whole_layout(const zc_layout* layout, bool json) {
  const zc_text_form form = json ? ZC_TEXT_JSON : ZC_TEXT_PLAIN;
  std::size_t needed_bytes = 0;
  require_ok(zc_layout_print(layout, form, nullptr, 0, &needed_bytes), "zc_layout_print");
  std::string text(needed_bytes, '\0');
  require_ok(zc_layout_print(layout, form, text.data(), text.size(), &needed_bytes), "zc_layout_print");
  text.pop_back();  // the NUL
  return text;
}

struct Shard {
  zc_buffer_info buffer{};
  const zc_piece* pieces = nullptr;
  std::size_t piece_count = 0;
  std::size_t owned = 0;
};

Shard read_shard(const zc_layout* layout, std::int32_t rank, std::size_t buffer) {
  Shard shard;
  shard.buffer.struct_size = sizeof shard.buffer;
  require_ok(zc_layout_get_buffer(layout, buffer, &shard.buffer), "zc_layout_get_buffer");
  require_ok(zc_layout_pieces(layout, rank, buffer, &shard.pieces, &shard.piece_count), "zc_layout_pieces");
  for (std::size_t i = 0; i < shard.piece_count; ++i) shard.owned += shard.pieces[i].count;
  return shard;
}

// Names of tensors come from the manifest: the layout lists them in the same order.
std::string rank_plain(const zc_layout* layout, const zc_layout_info& info, std::int32_t rank,
                       const Manifest& manifest) {
  std::string text = fmt::format("rank {} of {}\n", rank, info.ranks);
  auto out = std::back_inserter(text);
  for (std::size_t b = 0; b < info.buffer_count; ++b) {
    const Shard shard = read_shard(layout, rank, b);
    fmt::format_to(out, "  buffer {}, {}: {} elements and {} of padding, {} bytes\n", b,
                   zc_dtype_name(shard.buffer.dtype), shard.owned, shard.buffer.shard_count - shard.owned,
                   shard.buffer.shard_count * zc_dtype_bytes(shard.buffer.dtype));
    for (std::size_t i = 0; i < shard.piece_count; ++i) {
      const zc_piece& piece = shard.pieces[i];
      const ManifestTensor& tensor = manifest.tensors[piece.tensor];
      fmt::format_to(out, "      [{}..{}) {}", piece.shard_offset, piece.shard_offset + piece.count, tensor.name);
      if (piece.count != tensor.count)
        fmt::format_to(out, "[{}..{})", piece.tensor_offset, piece.tensor_offset + piece.count);
      text += '\n';
    }
  }
  return text;
}

// One entry of "shards" of the whole layout's JSON.
std::string rank_json(const zc_layout* layout, const zc_layout_info& info, std::int32_t rank) {
  std::string text =
      fmt::format(R"({{"format":"zc.shard","version":1,"ranks":{},"rank":{},"hash":"{:016x}","buffers":[)", info.ranks,
                  rank, info.hash);
  auto out = std::back_inserter(text);
  for (std::size_t b = 0; b < info.buffer_count; ++b) {
    const Shard shard = read_shard(layout, rank, b);
    fmt::format_to(out, "{}\n{{\"count\":{},\"padding\":{},\"pieces\":[", b == 0 ? "" : ",", shard.owned,
                   shard.buffer.shard_count - shard.owned);
    for (std::size_t i = 0; i < shard.piece_count; ++i) {
      const zc_piece& piece = shard.pieces[i];
      fmt::format_to(out, "{}[{},{},{},{}]", i == 0 ? "" : ",", piece.tensor, piece.tensor_offset, piece.shard_offset,
                     piece.count);
    }
    text += "]}";
  }
  return text + "]}\n";
}

}  // namespace

void run_layout(const LayoutOptions& options) {
  stage_of(options.stage);
  if (options.rank && (*options.rank < 0 || *options.rank >= options.cut.ranks))
    throw Failure(fmt::format("--rank {}: there are ranks 0 to {}", *options.rank, options.cut.ranks - 1), Exit::usage);
  const Manifest manifest = read_manifest(options.cut.model);
  const LayoutPointer layout = make_layout(manifest, options.cut, options.stage);
  if (!options.rank) {
    write_output(whole_layout(layout.get(), options.json), options.output);
    return;
  }
  zc_layout_info info{};
  info.struct_size = sizeof info;
  require_ok(zc_layout_get_info(layout.get(), &info), "zc_layout_get_info");
  write_output(options.json ? rank_json(layout.get(), info, *options.rank)
                            : rank_plain(layout.get(), info, *options.rank, manifest),
               options.output);
}

}  // namespace zerocomm::cli
