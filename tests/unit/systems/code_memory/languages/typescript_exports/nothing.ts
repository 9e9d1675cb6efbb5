const alone = 1
namespace Inner { export const x = 1 }
declare module 'other' { export const y: number }
