import Default, { named as renamed } from './a'
import type { Shape } from './b'
import * as everything from './c'
export default class Cart {}
export const one = 1, two = 2
export const { three, four: five, ...others } = one as any
export let [six, , seven = 7] = [] as any
export function eight(a: string): void
export function eight(a: any) {}
export async function* nine() {}
export abstract class Ten {}
export interface Eleven {}
export type Twelve = string
export enum Thirteen { A }
export const enum Fourteen { B }
export namespace Fifteen { export const inner = 1 }
export declare function sixteen(): void
export declare const seventeen: number
const local = 1
class Kept {}
export { local, Kept as eighteen, renamed as nineteen, local as "not a name" }
export { a as twenty, default as twentyOne, type T } from './d'
export type { U as TwentyTwo } from './e'
export * from './f'
export * as twentyThree from './g'
export import twentyFour = Fifteen.inner
export const __hidden = 1
