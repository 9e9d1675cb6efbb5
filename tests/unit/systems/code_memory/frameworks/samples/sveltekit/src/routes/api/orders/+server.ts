export const prerender = false
export async function GET({ url }) { return new Response() }
export const POST = async () => new Response()
