/**
 * ZeroComm: collectives and ZeRO sharding. The only include a C program needs.
 */
#ifndef ZEROCOMM_ZEROCOMM_H
#define ZEROCOMM_ZEROCOMM_H

#include <zerocomm/coll.h>
#include <zerocomm/comm.h>
#include <zerocomm/estimate.h>
#include <zerocomm/fetcher.h>
#include <zerocomm/info.h>
#include <zerocomm/layout.h>
#include <zerocomm/mem.h>
#include <zerocomm/norm.h>
#include <zerocomm/reducer.h>
#include <zerocomm/request.h>
#include <zerocomm/schedule.h>
#include <zerocomm/status.h>
#include <zerocomm/store.h>
#include <zerocomm/types.h>
#include <zerocomm/version.h>
#include <zerocomm/window.h>
#include <zerocomm/zero.h>

#endif
