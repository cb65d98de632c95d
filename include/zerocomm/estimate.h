/**
 * Closed formulas for memory and traffic of a ZeRO stage.
 *
 * Source: Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter
 * Models", sections 5 and 7, with the gradient shards of this library (f32) in place of 16-bit ones.
 */
#ifndef ZEROCOMM_ESTIMATE_H
#define ZEROCOMM_ESTIMATE_H

#include <zerocomm/layout.h>

ZC_BEGIN_DECLS

/** What the formulas depend on. Zero in a member means its default. */
typedef struct zc_estimate_config {
  size_t struct_size;
  size_t moment_bytes_per_element; /**< optimizer moments that the caller keeps per trained element;
                                        default 8 (Adam: two f32); ZC_ESTIMATE_NO_MOMENTS for none */
  int32_t micro_steps;             /**< gradient passes per optimizer step; default 1 */
  int32_t accumulate_first;        /**< non-zero: gradients are added up before they are reduced */
} zc_estimate_config;

/** Named zero for moment_bytes_per_element. */
#define ZC_ESTIMATE_NO_MOMENTS ((size_t)-1)

/** Bytes of one rank, padding included, and what one optimizer step moves. */
typedef struct zc_estimate {
  size_t struct_size;
  size_t parameter_bytes; /**< parameters as stored */
  size_t gradient_bytes;  /**< gradients that live from end to the optimizer step */
  size_t master_bytes;    /**< f32 master copies of 16-bit parameters */
  size_t moment_bytes;    /**< the caller's optimizer moments */
  size_t state_bytes;     /**< the sum of the four */
  size_t padding_bytes;   /**< how much of state_bytes is padding */
  size_t gather_elements; /**< elements that parameter gathers make this rank receive in one step */
  size_t reduce_elements; /**< elements that gradient reductions make this rank receive in one step */
  size_t logical_bytes;   /**< both in bytes */
} zc_estimate;

/**
 * Memory and traffic of one rank under a layout, to the byte.
 *
 * Stage 3 is counted with every unit gathered once in the forward and once in the backward pass, reuse off:
 * 2 gathers and 1 reduce-scatter; persistent units are gathered once. Stages 1 and 2: 1 gather, 1
 * reduce-scatter. Stage 0: one all-reduce, counted as reduce-scatter plus all-gather of gradients.
 * Norm, loss and control are not counted.
 *
 * Errors     ARGUMENT.
 * Threads    Any; pure.
 */
ZC_API ZC_NODISCARD zc_status zc_estimate_layout(const zc_layout *layout, int32_t rank,
                                                 const zc_estimate_config *config, zc_estimate *estimate);

/**
 * The same from a parameter count alone: no tensors, no padding, shares rounded up.
 *
 * parameter_dtype f32: 4 + 4 + K bytes per element; f16 or bf16 with f32 masters and f32 reduced gradients.
 */
ZC_API ZC_NODISCARD zc_status zc_estimate_count(size_t parameter_count, int32_t ranks, zc_stage stage,
                                                zc_dtype parameter_dtype, const zc_estimate_config *config,
                                                zc_estimate *estimate);

ZC_END_DECLS

#endif
